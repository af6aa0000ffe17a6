"""The scrub: verify slowly and all the time what is stored, and mend what can be made again from its source."""
