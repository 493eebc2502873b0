"""Tests a server whose entry asks for a jail. Loads slowly; `zotctl.mcp.trial` does the rest."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path

from zotd import paths
from zotd.client.blocking import Json
from zotd.exthost.jails import ConfinedProgram, ConfinementError, ExtensionJails
from zotd.exthost.launch import confined_program
from zotd.exthost.mcp import PREFIX, servers
from zotd.exthost.surroundings import Surroundings
from zotd.proxy.on_demand import ProxyOnDemand
from zotd.tasks import contained


def run(path: str, name: str, tried: Callable[[Sequence[str]], Json]) -> Json:
    """Return what `tried` returns; it gets the words in front of the server's command, and the proxy runs meanwhile."""
    found, _ = servers(Path(path), directory=Path.cwd())
    manifest = next(one for one in found if one.name == PREFIX + name)
    where = Surroundings(str(Path.cwd()), Path(paths.zot_home(os.environ)), os.environ)
    try:
        return asyncio.run(_in_jail(confined_program(manifest, where, lambda _: None), _places(os.environ), tried))
    except* ConfinementError as errors:
        reason = str(errors.exceptions[0])
    return {"ok": False, "error": f"the MCP server {name} {reason}"}


async def _in_jail(program: ConfinedProgram, places: Mapping[str, str], tried: Callable[[Sequence[str]], Json]) -> Json:
    tasks: list[asyncio.Task[None]] = []
    async with asyncio.TaskGroup() as group:

        def spawn(what: str, work: Coroutine[object, object, None]) -> None:
            tasks.append(contained(group, what, work))

        proxy = ProxyOnDemand(places["ZOTD_OUTLETS"], places["ZOT_HOME"], spawn)
        words = await ExtensionJails(spawn, places=places, proxy=proxy).words(program)
        result = await asyncio.to_thread(tried, words)
        for task in tasks:
            task.cancel()
    return result


def _places(env: Mapping[str, str]) -> Mapping[str, str]:
    home, socket, outlets = paths.zot_home(env), paths.socket_path(env), paths.outlet_dir(env)
    return {"ZOT_HOME": home, "ZOTD_SOCKET": socket, "ZOTD_OUTLETS": outlets}
