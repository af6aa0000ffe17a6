"""
The tool servers: MCP over Streamable HTTP, with both protocol generations on one URL.

The MCP SDK is imported only on demand: `protocol.transport` answers common requests directly, and
`protocol.sdk_fallback` (the SDK) answers the rest.
"""
