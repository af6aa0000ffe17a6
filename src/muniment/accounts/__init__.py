"""Accounts: people who sign in, their sessions and personal access tokens."""
