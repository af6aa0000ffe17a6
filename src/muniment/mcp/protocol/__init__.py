"""The protocol: Streamable HTTP, JSON-RPC messages, origin checks, fallback to the SDK."""
