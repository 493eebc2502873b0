"""Extension programs of our own, each in a process of its own: MCP servers as extensions."""
