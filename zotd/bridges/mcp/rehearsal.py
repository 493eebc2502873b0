"""Does once what each bridge does when it starts, so that forks of the process that has done it need not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

from mcp import Client
from mcp.shared.message import SessionMessage
from mcp.types import Implementation, jsonrpc_message_adapter

from zotd.bridges.mcp.connection import McpConnection
from zotd.bridges.mcp.http import HTTP_S
from zotd.bridges.mcp.results import tool_result
from zotd.bridges.mcp.tools import offered_names, registration
from zotd.sdk.pipe import encode
from zotd.wire.version import VERSION

TOOL = {"name": "a_tool", "description": "A tool.", "inputSchema": {"type": "object", "properties": {}}}
ANSWERS: dict[str, dict[str, object]] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {"listChanged": True}},
        "serverInfo": {"name": "a server", "version": "1"},
    },
    "tools/list": {"tools": [TOOL]},
    "tools/call": {"content": [{"type": "text", "text": "done"}], "isError": False},
}


def rehearse() -> None:
    """Connect to a server that is not there, list its tools and call one. Takes 50 ms; nothing of it is left running."""
    asyncio.run(_rehearse())


async def _rehearse() -> None:
    async with asyncio.timeout(HTTP_S):
        server = Client(_server(), mode="legacy", cache=None, client_info=Implementation(name="zot", version=VERSION))
        async with server as client:
            lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            connection = McpConnection(client, lost, lambda _: None)
            tools = {tool.name: tool for tool in await connection.tools()}
            names = offered_names("server", tools)
            for name, tool in tools.items():
                encode(registration(names[name], tool))
                encode(tool_result("1", await client.call_tool(name, {})))


class _Script:
    """Both streams of a transport: answers each request at once."""

    def __init__(self) -> None:
        self._answers: asyncio.Queue[SessionMessage | None] = asyncio.Queue(8)

    async def send(self, item: SessionMessage, /) -> None:
        request = item.message.model_dump(by_alias=True, exclude_unset=True)
        item.message.model_dump_json(by_alias=True, exclude_unset=True)
        if request.get("id") is not None:
            answer = {"jsonrpc": "2.0", "id": request["id"], "result": ANSWERS[request["method"]]}
            await self._answers.put(SessionMessage(jsonrpc_message_adapter.validate_python(answer, by_name=False)))

    async def receive(self) -> SessionMessage:
        answer = await self._answers.get()
        if answer is None:
            raise StopAsyncIteration
        return answer

    async def aclose(self) -> None:
        """End what waits for an answer."""
        if self._answers.empty():
            self._answers.put_nowait(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        return await self.receive()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()


@asynccontextmanager
async def _server() -> AsyncIterator[tuple[_Script, _Script]]:
    script = _Script()
    yield script, script
