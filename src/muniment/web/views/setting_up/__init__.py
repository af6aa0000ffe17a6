"""Pages of the first set-up, and of invitations to create an account."""
