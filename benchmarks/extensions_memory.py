"""What 20 Python extensions and the bridges of 20 MCP servers take, with the template process of each, forked and cold."""

import json
import sys
from functools import partial

from benchmarks import extensions_rig, rig
from benchmarks.extensions_start import SOURCE
from benchmarks.rig import Place, Row
from zotd.exthost.discovery import Discovered, discover
from zotd.exthost.mcp import servers

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
    """A row for each kind of process, forked and cold."""
    with rig.place() as place:
        for number in range(COUNT):
            extensions_rig.write(place, f"e{number}", SOURCE.replace("NAME", f"e{number}"))
        (place.cwd / "server.py").write_text(SERVER)
        entry = {"command": sys.executable, "args": [str(place.cwd / "server.py")]}
        (place.cwd / "mcp.json").write_text(json.dumps({"mcpServers": {f"s{one}": entry for one in range(COUNT)}}))
        async with extensions_rig.forking(place) as parts:
            return [
                *await _rows(
                    place,
                    parts,
                    f"{COUNT} Python extensions",
                    found=_extensions(place),
                    target_mib=EXTENSIONS_TARGET_MIB,
                ),
                *await _rows(
                    place,
                    parts,
                    f"bridges of {COUNT} MCP servers",
                    found=_bridges(place),
                    target_mib=BRIDGES_TARGET_MIB,
                ),
            ]


def _extensions(place: Place) -> Discovered:
    return discover(explicit=(), cwd=None, home=place.home, is_trusted=lambda _: False)


def _bridges(place: Place) -> Discovered:
    return Discovered(servers(place.cwd / "mcp.json", directory=place.cwd)[0])


async def _rows(
    place: Place, parts: extensions_rig.ForkingParts, what: str, *, found: Discovered, target_mib: float
) -> list[Row]:
    forks, reaper = parts
    template = forks.bridges if found.manifests[0].file else forks.extensions
    hosting = partial(extensions_rig.hosting, place, find=lambda: found, reaper=reaper)
    async with hosting(forks=forks) as host:
        pids = [one.serving.process.pid for one in host.extensions if one.serving]
        forked = extensions_rig.memory_mib([*pids, *([template.pid] if template.pid else [])])
    async with hosting() as host:
        cold = extensions_rig.memory_mib([one.serving.process.pid for one in host.extensions if one.serving])
    title = f"memory of {what}"
    return [
        Row(
            f"{title}, with their template process",
            forked,
            "MiB",
            cold,
            "cold",
            f"<= {target_mib:g} MiB",
            forked <= target_mib,
        )
    ]


if __name__ == "__main__":
    rig.run(measure)
