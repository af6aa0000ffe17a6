"""The people who sign in."""
