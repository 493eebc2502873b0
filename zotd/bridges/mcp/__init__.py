"""Bridges to MCP servers, each an extension: `python -m zotd.bridges.mcp`, started by the extension host.

    host  <── frames (pipes) ──>  a bridge, one of many in this process  <── MCP (stdio or HTTP) ──>  the server

A bridge ends with its server, with a sentence as the reason, and the host restarts both. A server leads a process group of its
own, which ends with the bridge.
"""
