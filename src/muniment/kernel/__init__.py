"""Words that every other room uses. No I/O, and no import of ours."""
