"""OAuth 2.1 for connected apps: registration, authorization and tokens, without HTTP."""
