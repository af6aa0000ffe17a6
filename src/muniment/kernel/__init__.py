"""Basic types and pure functions shared by every package. No I/O, no imports from other packages."""
