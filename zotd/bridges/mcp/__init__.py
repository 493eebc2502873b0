"""One MCP server as an extension: `python -m zotd.bridges.mcp FILE NAME`, started by the extension host.

    host  <── frames (stdio) ──>  this process  <── MCP (stdio or HTTP) ──>  the server

The bridge ends with its server, with a sentence as the reason, and the host restarts both. The server runs in the bridge's
process group, so it cannot outlive the bridge.
"""
