"""One MCP server as an extension: `python -m zotd.bridges.mcp FILE NAME`, started by the extension host.

    host  <── frames (stdio) ──>  this process  <── MCP (stdio or HTTP) ──>  the server

Its life is the server's: when the server is lost, it ends with a sentence, and the host starts both again. The server
runs in its process group, so nothing of it outlives this process.
"""
