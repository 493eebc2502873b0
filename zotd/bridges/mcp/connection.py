"""Connects to a server, and describes each kind of failure in a sentence.

Uses the handshake of MCP up to 2025-11-25. That of 2026-07-28 begins with a request at which older servers may exit, while
current servers still accept the older one.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx2
from mcp import Client, MCPError
from mcp.client import Transport
from mcp.client.session import ClientRequestContext, ElicitationFnT, MessageHandlerFnT, SamplingFnT
from mcp.types import Implementation, ListRootsResult, Prompt, Resource, ResourceTemplate, Root, Tool

from zotd.bridges.mcp.access import ServerAccess
from zotd.bridges.mcp.http import CLOSED, over_http
from zotd.bridges.mcp.pacing import paced
from zotd.bridges.mcp.server_place import ServerPlace
from zotd.bridges.mcp.stdio import over_stdio
from zotd.wire.mcp import SSE, McpServer, ServerError
from zotd.wire.version import VERSION

CONNECT_S = 120.0
"""Time limit for a server's first answer; `npx` and `uvx` may have to download it first."""

LIST_S = 30.0
"""Time limit for all pages of a list."""


@dataclass(frozen=True, slots=True)
class McpConnection:
    """A connection to a server that has answered."""

    client: Client
    lost: asyncio.Future[str]
    """Done when the server is lost, with the reason; it continues "the MCP server NAME"."""
    lose: Callable[[str], None]
    """Declare the server lost; only the first reason counts."""

    @property
    def runs_tasks(self) -> bool:
        """Whether the server runs calls of tools as tasks."""
        tasks = self.client.server_capabilities.tasks
        requests = None if tasks is None else tasks.requests
        return requests is not None and requests.tools is not None and requests.tools.call is not None

    async def tools(self) -> list[Tool]:
        """List the server's current tools, without those that need a task if the server runs none.

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
            return [tool for tool in tools if self.runs_tasks or not needs_a_task(tool)]

    async def prompts(self) -> list[Prompt]:
        """List the server's current prompts. Raises like `tools`."""
        if self.client.server_capabilities.prompts is None:
            return []
        async with asyncio.timeout(LIST_S):
            page = await self.client.list_prompts()
            prompts = page.prompts
            while page.next_cursor is not None:
                page = await self.client.list_prompts(cursor=page.next_cursor)
                prompts += page.prompts
            return prompts

    async def resources(self) -> list[Resource]:
        """List the server's current resources. Raises like `tools`."""
        if self.client.server_capabilities.resources is None:
            return []
        async with asyncio.timeout(LIST_S):
            page = await self.client.list_resources()
            resources = page.resources
            while page.next_cursor is not None:
                page = await self.client.list_resources(cursor=page.next_cursor)
                resources += page.resources
            return resources

    async def resource_templates(self) -> list[ResourceTemplate]:
        """List the patterns of further resources. Raises like `tools`."""
        if self.client.server_capabilities.resources is None:
            return []
        async with asyncio.timeout(LIST_S):
            page = await self.client.list_resource_templates()
            templates = page.resource_templates
            while page.next_cursor is not None:
                page = await self.client.list_resource_templates(cursor=page.next_cursor)
                templates += page.resource_templates
            return templates


def needs_a_task(tool: Tool) -> bool:
    """Return whether the tool can only be called as a task."""
    return tool.execution is not None and tool.execution.task_support == "required"


@asynccontextmanager
async def connected(
    server: McpServer,
    place: ServerPlace,
    *,
    access: ServerAccess | None,
    asked: ElicitationFnT | None = None,
    sampled: SamplingFnT | None = None,
    notified: MessageHandlerFnT,
    room: Callable[[], Awaitable[None]],
) -> AsyncIterator[McpConnection]:
    """Connect to the server, and disconnect at the end.

    `access` is the login to it, `asked` gets its questions to the user and `sampled` those to the model, which it is told can be asked only
    if these are given. `notified` gets its notifications. `room` is awaited before each message is read from it.

    Raises:
        ServerError: the server could not be reached, or was lost in the block; continues "the MCP server NAME".
    """
    lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def lose(sentence: str) -> None:
        if not lost.done():
            lost.set_result(sentence)

    try:
        async with AsyncExitStack() as stack:
            transport: Transport = (
                over_stdio(server, place, lose) if server.command else over_http(server, access, lose)
            )
            client = Client(
                paced(transport, room, ended=partial(lose, CLOSED) if server.type == SSE else _is_told_otherwise),
                # The older handshake; see the description of this module.
                mode="legacy",
                cache=None,
                message_handler=notified,
                elicitation_callback=asked,
                sampling_callback=sampled,
                list_roots_callback=partial(_roots, Path(place.cwd or Path.cwd(), server.cwd)),
                client_info=Implementation(name="zot", version=VERSION),
            )
            async with asyncio.timeout(CONNECT_S):
                await stack.enter_async_context(client)
            yield McpConnection(client, lost, lose)
    except ServerError:
        raise
    except (OSError, RuntimeError, ValueError, MCPError, httpx2.HTTPError, ExceptionGroup) as error:
        raise ServerError(_why(error, lost)) from error


def _is_told_otherwise() -> None:
    """The end of the messages: a process reports how it ended, and streamable HTTP has no end."""


async def _roots(directory: Path, _: ClientRequestContext) -> ListRootsResult:
    """Where the session works, or where the entry has the server work: servers may limit themselves to it."""
    return ListRootsResult(roots=[Root.model_validate({"uri": directory.as_uri(), "name": directory.name})])


def _why(error: Exception, lost: asyncio.Future[str]) -> str:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]  # the first error caused the others
    match error:
        case ServerError():
            return str(error)
        case TimeoutError():
            return "did not answer in time"
        # The loss has caused this error, and its reason says more. It is cancelled if the error has ended the wait for it.
        case MCPError() | httpx2.HTTPError() if lost.done() and not lost.cancelled():
            return lost.result()
        case MCPError():
            return f"refused the connection: {error.message}"
        case httpx2.HTTPError():
            return f"cannot be reached: {str(error) or type(error).__name__}"
        case _:
            return f"sent an invalid answer: {error}"
