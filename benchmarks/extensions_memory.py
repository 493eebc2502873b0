"""What 20 Python extensions take, with their template process, forked and cold; and the bridges of 20 MCP servers."""

import json
import sys
from functools import partial

from benchmarks import extensions_rig, rig
from benchmarks.extensions_start import SOURCE
from benchmarks.rig import Place, Row
from zotd.exthost.discovery import Discovered
from zotd.exthost.host import Host
from zotd.exthost.mcp import servers
from zotd.process import OrphanReaper

COUNT = 20

EXTENSIONS_TARGET_MIB = 60.0

BRIDGES_TARGET_MIB = 100.0

SERVER = """
import json, sys
RESULTS = {
    "initialize": {
        "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}
    },
    "tools/list": {"tools": [{"name": "hi", "inputSchema": {"type": "object"}}]},
}
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": RESULTS[request["method"]]}
        print(json.dumps(answer), flush=True)
"""
"""Its own memory is not counted."""


async def measure() -> list[Row]:
    """A row for extensions, and one for bridges."""
    with rig.place() as place:
        for number in range(COUNT):
            extensions_rig.write(place, f"e{number}", SOURCE.replace("NAME", f"e{number}"))
        (place.cwd / "server.py").write_text(SERVER)
        entry = {"command": sys.executable, "args": [str(place.cwd / "server.py")]}
        (place.cwd / "mcp.json").write_text(json.dumps({"mcpServers": {f"s{one}": entry for one in range(COUNT)}}))
        async with extensions_rig.forking(place) as parts:
            return [await _extensions(place, parts), await _bridges(place, parts[1])]


async def _extensions(place: Place, parts: extensions_rig.ForkingParts) -> Row:
    forks, reaper = parts
    async with extensions_rig.hosting(place, reaper=reaper, forks=forks) as host:
        forked = extensions_rig.memory_mib(_pids(host) | ({forks.extensions.pid} if forks.extensions.pid else set()))
    async with extensions_rig.hosting(place, reaper=reaper) as host:
        cold = extensions_rig.memory_mib(_pids(host))
    return Row(
        f"memory of {COUNT} Python extensions, with their template process",
        forked,
        "MiB",
        cold,
        "cold",
        f"<= {EXTENSIONS_TARGET_MIB:g} MiB",
        forked <= EXTENSIONS_TARGET_MIB,
    )


async def _bridges(place: Place, reaper: OrphanReaper) -> Row:
    file = place.cwd / "mcp.json"
    found = servers(file, directory=place.cwd)[0]
    taken = []
    for manifests in (found, found[:1]):
        async with extensions_rig.hosting(place, find=partial(Discovered, manifests), reaper=reaper) as host:
            taken.append(extensions_rig.memory_mib(_pids(host)))
    many, one = taken
    return Row(
        f"memory of the bridges of {COUNT} MCP servers, in one process",
        many,
        "MiB",
        one,
        "one server",
        f"<= {BRIDGES_TARGET_MIB:g} MiB",
        many <= BRIDGES_TARGET_MIB,
    )


def _pids(host: Host) -> set[int]:
    return {one.serving.process.pid for one in host.extensions if one.serving}


if __name__ == "__main__":
    rig.run(measure)
