"""The tool servers: MCP over Streamable HTTP, with both protocol generations on one URL."""
