"""HTTP connections: limits and client addresses."""
