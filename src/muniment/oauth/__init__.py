"""Apps that act for people: registration, authorization and tokens, without HTTP."""
