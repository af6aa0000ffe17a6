"""The security log: what happened to an account's access, and what operators and reviewers did."""
