"""HTTP semantics that several surfaces share."""
