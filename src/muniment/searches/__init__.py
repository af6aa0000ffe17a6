"""Searches: those that accounts have named, and mail to anyone who confirmed it about listings and searches."""
