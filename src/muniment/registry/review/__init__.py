"""Review: the queue, decisions, claims and suggestions, invitations, notifications."""
