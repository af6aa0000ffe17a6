"""Views that a client shows beside a tool's answer (MCP Apps): HTML without libraries, one file each."""
