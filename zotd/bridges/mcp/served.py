"""One bridge from its start to its end: says hello, reads its entry, imports the MCP package, serves.

It can be asked to leave at any time; `kill` also ends the processes of its server at once.
"""

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Protocol, cast

from zotd import logs
from zotd.bridges.host_link import HostLink
from zotd.bridges.mcp.server_place import ServerPlace
from zotd.wire.bridges import BridgeRequest
from zotd.wire.mcp import McpServer, ServerError, expanded, fingerprint, read_servers, secrets
from zotd.wire.version import VERSION

CAPABILITIES = ("tools", "commands", "events", "tool_cancel", "tool_progress", "ready")
"""`ready` announces the frame `ready`, so the host does not take silence before it as the end of registrations."""

IDENTIFYING = 4
"""Arguments that say which entry it is, and where logins are."""

MODULE = "zotd.bridges.mcp.bridge"


class _Bridge(Protocol):
    """`bridge.McpBridge`, of which the module is imported late."""

    async def run(self) -> None: ...

    def leave(self) -> None: ...


class _Module(Protocol):
    def McpBridge(  # noqa: N802
        self, name: str, server: McpServer, place: ServerPlace, pipe: HostLink, *, logins: Path | None
    ) -> _Bridge: ...


class ServedBridge:
    """One bridge. `run` it once, in a task."""

    def __init__(self, request: BridgeRequest, stderr: int | None, *, fails: Callable[[str], Awaitable[None]]) -> None:
        """Serve the entry that the arguments name: file, server, digest of the entry as the host has read it, file of logins.

        The last two can be missing. Further arguments are words that stand in front of the server's command, and confine it.
        `stderr` is the descriptor for the server's, None: that of this process. `fails` gets a sentence about why it ended.
        """
        self._request = request
        self._fails = fails
        self._place = ServerPlace(request.env, request.cwd, stderr, request.arguments[IDENTIFYING:])
        self._bridge: _Bridge | None = None
        self._task: asyncio.Task[object] | None = None

    async def run(self, link: HostLink) -> int:
        """Serve until the host ends it; return the exit code."""
        self._task = asyncio.current_task()
        file, name, *more = self._request.arguments[:IDENTIFYING]
        digest, logins = (*more, None, None)[:2]
        link.send({"type": "hello", "name": f"mcp-{name}", "version": VERSION, "capabilities": CAPABILITIES})
        try:
            server = await asyncio.to_thread(definition, Path(file), name, self._request.env, digest)
            # The import takes half a second to a second and 40 MB. On a busy machine, a hello after it would be too late.
            module = cast("_Module", await asyncio.to_thread(importlib.import_module, MODULE))
            self._bridge = module.McpBridge(name, server, self._place, link, logins=Path(logins) if logins else None)
            await self._bridge.run()
        except ServerError as error:
            # People see the last line of the log as the reason.
            await self._fails(logs.masked(f"the MCP server {name} {error}"))
            return 1
        return 0

    def leave(self) -> None:
        """End it, and its server with patience; the second time, without."""
        if self._bridge is not None:
            self._bridge.leave()
        elif self._task is not None:
            self._task.cancel()

    def signal(self, number: int) -> None:
        """Send a signal to the processes of its server."""
        self._place.group.signal(number)


def definition(file: Path, name: str, env: Mapping[str, str], digest: str | None = None) -> McpServer:
    """Read the server's entry, with its variables replaced; its secrets are masked in the log from now on. Blocks.

    With the digest of the entry that the host has read: the file may have changed since.

    Raises:
        ServerError: there is none, it cannot be used, or it is another one.
    """
    try:
        entry = read_servers(file.read_bytes()).get(name)
    except (OSError, ServerError) as error:
        raise ServerError(f"cannot be looked up: {file}: {error}") from error
    if entry is None:
        raise ServerError(f"is not in {file} any more")
    if isinstance(entry, ServerError):
        raise ServerError(f"cannot be used: {entry}")
    if digest is not None and fingerprint(entry) != digest:
        raise ServerError(f"has changed in {file} since it was loaded; reload it, and trust the directory again")
    server = expanded(entry, env)
    # From here on these values are masked in the log, before the server can fail with a message that contains them.
    for secret in (*secrets(entry, env), *secrets(server, {})):
        logs.hide(secret)
    return server
