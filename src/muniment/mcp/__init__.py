"""
The tool servers: MCP over Streamable HTTP, both eras on one address.

Nothing here imports the MCP SDK before it is asked for: the thin path in `transport` answers the
ordinary requests with bytes, and `reference` (the SDK) answers the rest.
"""
