"""Converts the MCP servers of an editor to entries as in `mcp.json`, and has the daemon run them for a session."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from zotd.client.client import Client
from zotd.client.errors import ClientError, ConnectionLostError
from zotd.wire import api
from zotd.wire.acp import EditorServer, NamedValue
from zotd.wire.base import BadFrameError, convert
from zotd.wire.mcp import literal

NAME_CHARS = 50
"""Longest name; an entry of `mcp.json` may have 60 characters, and equal names get a number."""

SUPPORTED = ("stdio", "http", "sse")
"""Transports; the last two are announced by `mcpCapabilities`."""

Entry = Mapping[str, object]

_FOREIGN = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class EditorServers:
    """What an editor wants to have in a session."""

    entries: Mapping[str, Entry] = field(default_factory=dict)
    """As in `mcp.json`."""
    faults: Sequence[str] = ()
    """A sentence about each server that cannot be used."""

    async def bring(self, session_id: str, client: Client) -> Sequence[str]:
        """Have the daemon run the servers as long as the connection of `client` lasts; return what is to be told."""
        if not self.entries:
            return self.faults
        wanted = api.McpServers(session=session_id, servers={name: dict(one) for name, one in self.entries.items()})
        try:
            taken = await client.ask(wanted, api.McpServersTaken)
        except ConnectionLostError:  # they are brought again over the next connection
            return self.faults
        except ClientError as error:
            names = ", ".join(self.entries)
            return [*self.faults, f"the editor's MCP servers are not used ({names}): {error}"]
        return [*self.faults, *taken.refused]


def editor_servers(servers: Sequence[Mapping[str, object]] | None) -> EditorServers:
    """Convert the `mcpServers` of a request. Names become such that `mcp.json` may have them."""
    entries: dict[str, Entry] = {}
    faults: list[str] = []
    for number, raw in enumerate(servers or (), 1):
        try:
            server = convert(raw, EditorServer)
        except BadFrameError as error:
            faults.append(f"the MCP server {_label(raw, number)} of the editor is not used: {error}")
            continue
        if server.type not in SUPPORTED:
            sentence = f'its transport "{server.type[:80]}" is not supported; there are {", ".join(SUPPORTED)}'
            faults.append(f'the MCP server "{server.name[:80]}" of the editor is not used: {sentence}')
        else:
            entries[_free_name(server.name, entries)] = _entry(server)
    return EditorServers(entries, faults)


def _entry(server: EditorServer) -> Entry:
    # An editor means what it writes: nothing in it stands for a variable of the environment.
    if server.type != "stdio":
        return {"type": server.type, "url": literal(server.url), "headers": _values(server.headers)}
    args = [literal(one) for one in server.args]
    return {"command": literal(server.command), "args": args, "env": _values(server.env)}


def _values(given: Sequence[NamedValue]) -> dict[str, str]:
    return {one.name: literal(one.value) for one in given}


def _free_name(name: str, taken: Mapping[str, Entry]) -> str:
    plain = _FOREIGN.sub("-", name)[:NAME_CHARS] or "server"
    number = 2
    found = plain
    while found in taken:
        found, number = f"{plain}-{number}", number + 1
    return found


def _label(raw: Mapping[str, object], number: int) -> str:
    name = raw.get("name")
    return f'"{name[:80]}"' if isinstance(name, str) else str(number)
