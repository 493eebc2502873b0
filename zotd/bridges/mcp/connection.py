"""A connection to a server, and every way in which there is none, as a sentence.

The handshake is the one of MCP up to 2025-11-25. That of 2026-07-28 begins with another request, at which servers of
before may exit; and servers of today still know the older one.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import httpx2
from mcp import Client, MCPError
from mcp.client import Transport
from mcp.client.session import MessageHandlerFnT
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Implementation, Tool

from zotd.bridges.mcp.stdio import LINE_BYTES, over_stdio
from zotd.wire.mcp import McpServer, ServerError
from zotd.wire.version import VERSION

CONNECT_S = 120.0
"""From the start of a server to its first answer: `npx` and `uvx` may have to fetch it first."""

HTTP_S = 30.0
"""For a connection to be made, or a request to be written."""

LIST_S = 30.0
"""For all pages of a list of tools."""

SESSION = "mcp-session-id"
"""The header of a session."""

NO_SESSION = (httpx2.codes.BAD_REQUEST, httpx2.codes.NOT_FOUND)
"""What a request of a session that is over is answered with: 404 by MCP (Transports), 400 by many servers."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class McpConnection:
    """A server that has answered."""

    client: Client
    lost: asyncio.Future[str]
    """Why it is there no more, when that is so; goes on from "the MCP server NAME"."""
    lose: Callable[[str], None]
    """Give it up for this reason, if there is none yet."""

    async def tools(self) -> list[Tool]:
        """All tools that it has now and that we can call: not those that answer with a task only.

        Raises:
            MCPError, TimeoutError, ValueError: it does not tell.
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
async def connected(server: McpServer, *, notified: MessageHandlerFnT) -> AsyncIterator[McpConnection]:
    """Reach the server, and leave it at the end. `notified` gets its notifications.

    Raises:
        ServerError: it could not be reached, or was lost in the block; goes on from "the MCP server NAME".
    """
    lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def lose(sentence: str) -> None:
        if not lost.done():
            lost.set_result(sentence)

    try:
        async with AsyncExitStack() as stack:
            if server.command:
                transport: Transport = over_stdio(server, lose)
            else:
                http = await stack.enter_async_context(_http_client(server, lose))
                transport = streamable_http_client(server.url, http_client=http, max_sse_event_size=LINE_BYTES)
            client = Client(
                transport,
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
        """Tell what the package does not: it makes one error of all these."""
        status = response.status_code
        if response.request.method != "POST":
            return  # the stream of notifications and the goodbye: a server need not know them
        if status == httpx2.codes.UNAUTHORIZED:
            lose("refused the request as unauthorized (HTTP 401); its `headers` need a valid token")
        elif status in NO_SESSION and SESSION in response.request.headers and not await _is_answer(response):
            lose("has ended the session; it was probably restarted")
        elif response.is_error:
            log.warning("the server answers HTTP %d", status)

    # No limit for reading: the host has one for each call, and the stream of notifications is silent for hours.
    timeout = httpx2.Timeout(HTTP_S, read=None)
    return httpx2.AsyncClient(headers=server.headers, timeout=timeout, event_hooks={"response": [look]})


async def _is_answer(response: httpx2.Response) -> bool:
    """Whether this error is about the request in it rather than about the session."""
    try:
        body = json.loads(await response.aread())
    except (ValueError, httpx2.HTTPError):
        return False
    return isinstance(body, dict) and body.get("id") is not None


def _why(error: Exception, lost: asyncio.Future[str]) -> str:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]  # the first is the cause of the others
    match error:
        case ServerError():
            return str(error)
        case TimeoutError():
            return "did not answer in time"
        case MCPError() if lost.done():
            return lost.result()
        case MCPError():
            return f"refused the connection: {error.message}"
        case httpx2.HTTPError():
            return f"cannot be reached: {str(error) or type(error).__name__}"
        case _:
            return f"sent an invalid answer: {error}"
