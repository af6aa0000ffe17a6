"""Invitations of operators: a mailed link with which a person gets an account, a role, and perhaps a listing."""
