"""HTTP connections: limits, client addresses, the fast path."""
