"""The program behind `zotctl mcp test`: connects to a server once, and prints what it offers as a line of JSON."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from mcp import MCPError

from zotd import logs
from zotd.bridges.mcp.access import ServerAccess
from zotd.bridges.mcp.connection import McpConnection, connected
from zotd.bridges.mcp.prompts import command_names
from zotd.bridges.mcp.served import definition
from zotd.bridges.mcp.server_place import ServerPlace
from zotd.bridges.mcp.tools import offered_names
from zotd.wire.mcp import McpServer, ServerError

ABOUT_CHARS = 200
"""How much of a description is printed."""

Item = dict[str, str]


def main() -> int:
    """Test the server `argv[2]` of the file `argv[1]`, with its login in the file `argv[3]`; return the exit code 0.

    Further arguments are words that stand in front of its command, and confine it.
    """
    file, name, logins, *words = sys.argv[1:]
    with logs.configured(None, level="warning", stderr=True):
        try:
            result = asyncio.run(_test(name, definition(Path(file), name, os.environ), Path(logins), words))
        except ServerError as error:
            result = {"ok": False, "error": logs.masked(f"the MCP server {name} {error}")}
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


async def _test(name: str, server: McpServer, logins: Path, words: Sequence[str]) -> dict[str, object]:
    began = time.monotonic()
    place = ServerPlace(os.environ, "", None, words)
    access = ServerAccess(name, server.url, logins)
    async with connected(server, place, access=access, notified=_unheard, room=_unlimited) as connection:
        answered_s = time.monotonic() - began
        return {"ok": True, **await _described(name, connection), "seconds": round(answered_s, 2)}


async def _described(name: str, connection: McpConnection) -> dict[str, object]:
    client, problems = connection.client, list[str]()

    async def listed(what: str, look: Callable[[], Awaitable[Sequence[Item]]]) -> Sequence[Item]:
        try:
            return await look()
        except TimeoutError:
            problems.append(f"the server did not list its {what} in time")
        except (MCPError, ValueError) as error:
            problems.append(logs.masked(f"the server's {what} could not be listed: {error}"))
        return []

    async def tools() -> list[Item]:
        found = {tool.name: tool for tool in await connection.tools()}
        names = offered_names(name, found)
        return [_item(names[own], tool.description or tool.title) for own, tool in found.items()]

    async def prompts() -> list[Item]:
        found = {prompt.name: prompt for prompt in await connection.prompts()}
        names = command_names(name, found)
        return [_item(f"/{names[own]}", prompt.description or prompt.title) for own, prompt in found.items()]

    async def resources() -> list[Item]:
        return [_item(one.uri, one.description or one.title or one.name) for one in await connection.resources()]

    info = client.server_info
    return {
        "server": " ".join((info.title or info.name, info.version)) if info else "",
        "protocol": client.protocol_version,
        "instructions": client.instructions or "",
        "tools": await listed("tools", tools),
        "prompts": await listed("prompts", prompts),
        "resources": await listed("resources", resources),
        "problems": problems,
    }


def _item(name: str, about: str | None) -> Item:
    return {"name": name, "about": " ".join((about or "").split())[:ABOUT_CHARS]}


async def _unheard(message: object) -> None:
    """Take a notification, of which none matters here."""


async def _unlimited() -> None:
    """Read at once what the server sends."""


if __name__ == "__main__":
    sys.exit(main())
