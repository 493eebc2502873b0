"""Programs that translate between zotd and another protocol: ACP for editors, MCP for tool servers."""
