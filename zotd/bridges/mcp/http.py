"""Reaches a server by its URL, as a transport of the package `mcp`: over streamable HTTP, or over HTTP+SSE as older servers have it."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from zotd.bridges.mcp.access import LoginAuth, ServerAccess
from zotd.bridges.mcp.stdio import LINE_BYTES
from zotd.wire.mcp import SSE, McpServer

HTTP_S = 30.0
"""Time limit for connecting and for writing a request."""

SESSION = "mcp-session-id"
"""HTTP header that identifies an MCP session."""

NO_SESSION = (httpx2.codes.BAD_REQUEST, httpx2.codes.NOT_FOUND)
"""Status codes for a request of an expired session: 404 according to MCP (Transports), 400 from many servers."""

CLOSED = "closed the connection"
"""Why a server is lost; continues "the MCP server NAME"."""

log = logging.getLogger(__name__)


@asynccontextmanager
async def over_http(
    server: McpServer, access: ServerAccess | None, lose: Callable[[str], None]
) -> AsyncIterator[TransportStreams]:
    """Connect to the server; `lose` is called with the reason when it is of no further use."""
    # In a thread, because it reads the certificates of the system.
    client = await asyncio.to_thread(_client, server, access, lose)
    if server.type == SSE:

        def made(
            headers: dict[str, str] | None = None,
            timeout: httpx2.Timeout | None = None,
            auth: httpx2.Auth | None = None,
        ) -> httpx2.AsyncClient:
            del headers, timeout, auth  # the client has its own
            return client

        async with sse_client(server.url, httpx_client_factory=made) as streams:
            yield streams
        return
    async with client, streamable_http_client(server.url, http_client=client, max_sse_event_size=LINE_BYTES) as streams:
        yield streams


def _client(server: McpServer, access: ServerAccess | None, lose: Callable[[str], None]) -> httpx2.AsyncClient:
    is_sse = server.type == SSE

    def matters(method: str) -> bool:
        """Whether a request must succeed: opening the stream of notifications and ending the session are optional."""
        return method == "POST" or is_sse

    async def look(response: httpx2.Response) -> None:
        """Examine the status of a response, which the package reduces to one kind of error."""
        status = response.status_code
        if not matters(response.request.method) or status == httpx2.codes.UNAUTHORIZED:
            return  # a refusal may be followed by another attempt with a new token
        if is_sse and response.is_error:
            lose(f"refused the request (HTTP {status})")  # the package would wait for an answer for ever
        elif status in NO_SESSION and SESSION in response.request.headers and not await _is_answer(response):
            lose("has ended the session; it was probably restarted")
        elif response.is_error:
            log.warning("the server answers HTTP %d", status)

    # No limit for reading: the host limits each call, and the stream of notifications may be silent for hours.
    timeout = httpx2.Timeout(HTTP_S, read=None)
    auth = LoginAuth(access, lose, loses=matters)
    return httpx2.AsyncClient(headers=server.headers, timeout=timeout, auth=auth, event_hooks={"response": [look]})


async def _is_answer(response: httpx2.Response) -> bool:
    """Return True if an error response belongs to its request rather than to the session."""
    try:
        body = json.loads(await response.aread())
    except (ValueError, httpx2.HTTPError):
        return False
    return isinstance(body, dict) and body.get("id") is not None
