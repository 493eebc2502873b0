"""A Python module `tools/x.py` is saved: until a call is answered by what was saved."""

import asyncio
import time
from functools import partial

from benchmarks import extensions_rig, rig
from benchmarks.extensions_rig import Deaf
from benchmarks.rig import Place, Row
from zotd.exthost.discovery import Discovered
from zotd.exthost.host import Host
from zotd.exthost.modules import tools_host
from zotd.sdk.modules.watch import QUIET_S

ROUNDS = 15

TARGET_MS = 1000.0

PATIENCE_S = 10.0
"""Longest wait for a file to be seen."""

SOURCE = '''
async def run() -> str:
    """Tells which version of the file this is."""
    return "VERSION"
'''


async def measure() -> list[Row]:
    """Two rows: for a file that has changed, and for a new one."""
    with rig.place() as place:
        folder = place.home / "extensions" / "tools"
        folder.mkdir(parents=True)
        manifest = tools_host([folder.parent], cwd=place.cwd, python=None)
        assert manifest is not None
        listener = Deaf()
        async with extensions_rig.hosting(place, find=lambda: Discovered([manifest]), listener=listener) as host:
            saves = _Saves(place, host, listener)
            taken = await rig.in_turns(
                ROUNDS,
                {
                    "changed": partial(saves.until_callable, is_new=False),
                    "new": partial(saves.until_callable, is_new=True),
                },
            )
    names = {"changed": "save of a Python module, until a call is answered by it", "new": "the same, a new module"}
    return [_row(said, rig.median(taken[name]) * 1000) for name, said in names.items()]


def _row(measure: str, ms: float) -> Row:
    floor = "the pause that an editor is given"
    return Row(measure, ms, "ms", QUIET_S * 1000, floor, f"<= {TARGET_MS:g} ms", ms <= TARGET_MS)


class _Saves:
    """Module files, each with the version that it should answer with."""

    def __init__(self, place: Place, host: Host, listener: Deaf) -> None:
        self._folder = place.home / "extensions" / "tools"
        self._host = host
        self._listener = listener
        self._count = 0

    async def until_callable(self, *, is_new: bool) -> float:
        """Save a file, and call its tool until the answer is that of this version: at each registration."""
        self._count += 1
        name, version = f"x{self._count if is_new else ''}", f"version {self._count}"
        start = time.perf_counter()
        (self._folder / f"{name}.py").write_text(SOURCE.replace("VERSION", version))
        async with asyncio.timeout(PATIENCE_S):
            self._listener.changed.clear()  # before the look, so that no registration is missed
            while not await self._answers(name, version):
                await self._listener.changed.wait()
                self._listener.changed.clear()
        return time.perf_counter() - start

    async def _answers(self, name: str, version: str) -> bool:
        if not any(tool.spec.name == name for tool in self._host.offers.tools()):
            return False
        return await extensions_rig.call(extensions_rig.tool(self._host, name)) == version


if __name__ == "__main__":
    rig.run(measure)
