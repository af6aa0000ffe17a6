"""The protocol: Streamable HTTP, JSON-RPC messages, origin checks, and the fallback to the SDK."""
