"""Saved searches: the queries of lists that an account has named."""
