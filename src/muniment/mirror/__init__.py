"""A copy of another registry: fetched from its public exports and changes, verified, and served read-only."""
