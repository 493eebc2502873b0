"""Connects to a server, and describes each kind of failure in a sentence.

Uses the handshake of MCP up to 2025-11-25. That of 2026-07-28 begins with a request at which older servers may exit, while
current servers still accept the older one.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import httpx2
from mcp import Client, MCPError
from mcp.client import Transport
from mcp.client.session import MessageHandlerFnT
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Implementation, Tool

from zotd.bridges.mcp.pacing import paced
from zotd.bridges.mcp.server_place import ServerPlace
from zotd.bridges.mcp.stdio import LINE_BYTES, over_stdio
from zotd.wire.mcp import McpServer, ServerError
from zotd.wire.version import VERSION

CONNECT_S = 120.0
"""Time limit for a server's first answer; `npx` and `uvx` may have to download it first."""

HTTP_S = 30.0
"""Time limit for connecting and for writing a request."""

LIST_S = 30.0
"""Time limit for all pages of the list of tools."""

SESSION = "mcp-session-id"
"""HTTP header that identifies an MCP session."""

NO_SESSION = (httpx2.codes.BAD_REQUEST, httpx2.codes.NOT_FOUND)
"""Status codes for a request of an expired session: 404 according to MCP (Transports), 400 from many servers."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class McpConnection:
    """A connection to a server that has answered."""

    client: Client
    lost: asyncio.Future[str]
    """Done when the server is lost, with the reason; it continues "the MCP server NAME"."""
    lose: Callable[[str], None]
    """Declare the server lost; only the first reason counts."""

    async def tools(self) -> list[Tool]:
        """List the server's current tools without those that can only be called as a task.

        Raises:
            MCPError, TimeoutError, ValueError: the list could not be read.
        """
        if self.client.server_capabilities.tools is None:
            return []
        async with asyncio.timeout(LIST_S):
            page = await self.client.list_tools()
            tools = page.tools
            while page.next_cursor is not None:
                page = await self.client.list_tools(cursor=page.next_cursor)
                tools += page.tools
            return [tool for tool in tools if not _needs_a_task(tool)]


def _needs_a_task(tool: Tool) -> bool:
    return tool.execution is not None and tool.execution.task_support == "required"


@asynccontextmanager
async def connected(
    server: McpServer, place: ServerPlace, *, notified: MessageHandlerFnT, room: Callable[[], Awaitable[None]]
) -> AsyncIterator[McpConnection]:
    """Connect to the server, and disconnect at the end. `notified` gets its notifications.

    `room` is awaited before each message is read from it.

    Raises:
        ServerError: the server could not be reached, or was lost in the block; continues "the MCP server NAME".
    """
    lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def lose(sentence: str) -> None:
        if not lost.done():
            lost.set_result(sentence)

    try:
        async with AsyncExitStack() as stack:
            if server.command:
                transport: Transport = over_stdio(server, place, lose)
            else:
                # In a thread, because it reads the certificates of the system.
                http = await stack.enter_async_context(await asyncio.to_thread(_http_client, server, lose))
                transport = streamable_http_client(server.url, http_client=http, max_sse_event_size=LINE_BYTES)
            client = Client(
                paced(transport, room),
                # The older handshake; see the description of this module.
                mode="legacy",
                cache=None,
                message_handler=notified,
                client_info=Implementation(name="zot", version=VERSION),
            )
            async with asyncio.timeout(CONNECT_S):
                await stack.enter_async_context(client)
            yield McpConnection(client, lost, lose)
    except ServerError:
        raise
    except (OSError, RuntimeError, ValueError, MCPError, httpx2.HTTPError, ExceptionGroup) as error:
        raise ServerError(_why(error, lost)) from error


def _http_client(server: McpServer, lose: Callable[[str], None]) -> httpx2.AsyncClient:
    async def look(response: httpx2.Response) -> None:
        """Examine the status of a response, which the package reduces to one kind of error."""
        status = response.status_code
        if response.request.method != "POST":
            return  # opening the stream of notifications and ending the session are optional for servers
        if status == httpx2.codes.UNAUTHORIZED:
            lose("refused the request as unauthorized (HTTP 401); its `headers` need a valid token")
        elif status in NO_SESSION and SESSION in response.request.headers and not await _is_answer(response):
            lose("has ended the session; it was probably restarted")
        elif response.is_error:
            log.warning("the server answers HTTP %d", status)

    # No limit for reading: the host limits each call, and the stream of notifications may be silent for hours.
    timeout = httpx2.Timeout(HTTP_S, read=None)
    return httpx2.AsyncClient(headers=server.headers, timeout=timeout, event_hooks={"response": [look]})


async def _is_answer(response: httpx2.Response) -> bool:
    """Return True if an error response belongs to its request rather than to the session."""
    try:
        body = json.loads(await response.aread())
    except (ValueError, httpx2.HTTPError):
        return False
    return isinstance(body, dict) and body.get("id") is not None


def _why(error: Exception, lost: asyncio.Future[str]) -> str:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]  # the first error caused the others
    match error:
        case ServerError():
            return str(error)
        case TimeoutError():
            return "did not answer in time"
        # The loss has caused this error, and its reason says more.
        case MCPError() if lost.done():
            return lost.result()
        case MCPError():
            return f"refused the connection: {error.message}"
        case httpx2.HTTPError():
            return f"cannot be reached: {str(error) or type(error).__name__}"
        case _:
            return f"sent an invalid answer: {error}"
