"""The protocol: Streamable HTTP, JSON-RPC messages, and origin checks."""
