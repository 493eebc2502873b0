"""Errors of a real pyright after an edit: what the edit waits for, next to a raw client of pyright's own.

A file of 500 lines is changed again and again, each time with another error in it. Both servers have read the file before.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

from benchmarks import rig
from benchmarks.rig import Place, Row
from zotd.config import Config
from zotd.config.current import CurrentConfig
from zotd.config.language_servers import DiagnosticsSection, LanguageServerSection
from zotd.core.edit_checks import EditingSession
from zotd.diagnostics.server import ServerFacilities
from zotd.diagnostics.servers import LanguageServers
from zotd.exthost.jails import ExtensionJails
from zotd.process import OrphanReaper

LINES = 500

ROUNDS = 30

PATIENCE_S = 20.0

TARGET_MS = 300.0

PYRIGHT = ("pyright-langserver", "--stdio")


async def measure() -> list[Row]:
    """One row for all edits after the first, and one for the first, which starts the server."""
    with rig.place() as where:
        env = {**where.env, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{where.env['PATH']}"}
        async with serving(where) as servers, raw_client(where, env) as raw:
            session = EditingSession("s_1", str(where.cwd.resolve()), env, print)
            edits = texts()
            begun = time.perf_counter()
            await edited(servers, session, where.cwd.resolve() / "a.py", edits)
            first = (time.perf_counter() - begun) * 1000
            probes = {
                "zot": lambda: edited(servers, session, where.cwd.resolve() / "a.py", edits),
                "raw": lambda: raw(next(edits)),
            }
            taken = await rig.in_turns(ROUNDS, probes)
    ms = {name: rig.median(samples) * 1000 for name, samples in taken.items()}
    slowest = rig.percentile(taken["zot"], 90) * 1000
    name = f"errors of pyright after an edit of {LINES} lines"
    return [
        Row(
            f"{name}, after the first",
            ms["zot"],
            "ms",
            ms["raw"],
            "a raw client of pyright",
            f"<= {TARGET_MS:g} ms",
            ms["zot"] <= TARGET_MS,
            note=f"90 % within {rig.figure(slowest)} ms",
        ),
        Row(f"{name}: the first, which starts it", first, "ms", None, "", "", None),
    ]


def texts() -> Iterator[str]:
    """Yield the text of the file, each time with another error."""
    lines = [f"def f{i}(a: int, b: str) -> str:\n    c = a + {i}\n    return b * c\n\n" for i in range(LINES // 4)]
    body = "\n".join("".join(lines).split("\n")[: LINES - 1])
    for number in count():
        yield f"{body}\nwrong: int = 'text {number}'\n"


@asynccontextmanager
async def serving(where: Place) -> AsyncIterator[LanguageServers]:
    """Language servers as a daemon has them, but only pyright."""
    others = {name: LanguageServerSection(enabled=False) for name in ("ruff", "gopls", "rust-analyzer")}
    section = DiagnosticsSection(wait_s=PATIENCE_S, servers=others)
    async with asyncio.TaskGroup() as group:

        def spawn(name: str, work: Coroutine[object, object, None]) -> None:
            group.create_task(work, name=name)

        reaper = OrphanReaper(where.home, spawn)
        jails = ExtensionJails(spawn, places={"ZOT_HOME": str(where.home)}, proxy=None)
        facilities = ServerFacilities(where.home, spawn, jails, reaper)
        servers = LanguageServers(facilities, CurrentConfig(Config(diagnostics=section)))
        try:
            yield servers
        finally:
            await servers.stop()
            await reaper.close()


async def edited(servers: LanguageServers, session: EditingSession, path: Path, edits: Iterator[str]) -> float:
    """Change the file, and return how long the errors took."""
    before = path.read_bytes() if path.exists() else None  # noqa: ASYNC240  (not measured)
    after = next(edits).encode()
    path.write_bytes(after)  # noqa: ASYNC240  (not measured)
    begun = time.perf_counter()
    told = await servers.new_errors(session, str(path), before, after)
    taken = time.perf_counter() - begun
    assert "1 new error" in told, told
    return taken


@asynccontextmanager
async def raw_client(
    where: Place, env: dict[str, str]
) -> AsyncIterator[Callable[[str], Coroutine[object, object, float]]]:
    """Yield what changes a file in a pyright of its own and returns how long its errors took."""
    root = where.cwd / "raw"
    root.mkdir()
    uri = (root / "a.py").as_uri()
    async with asyncio.timeout(PATIENCE_S):
        process = await asyncio.create_subprocess_exec(
            *PYRIGHT,
            cwd=root,
            env=env,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 24,
            start_new_session=True,
        )
    wire = _Wire(process)
    capabilities = {"textDocument": {"diagnostic": {}}, "workspace": {"configuration": False}}
    await wire.ask("initialize", {"processId": None, "rootUri": root.as_uri(), "capabilities": capabilities})
    wire.tell("initialized", {})
    versions = count(1)

    async def change(text: str) -> float:
        version = next(versions)
        document = {"uri": uri, "version": version}
        begun = time.perf_counter()
        if version == 1:
            wire.tell("textDocument/didOpen", {"textDocument": {**document, "languageId": "python", "text": text}})
        else:
            wire.tell("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})
        found = await wire.ask("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        assert "is not assignable" in found, found
        return time.perf_counter() - begun

    try:
        yield change
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # pyright is a Python program that has started Node
        await process.wait()


class _Wire:
    """The least that speaks with a language server."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._sink, self._source = process.stdin, process.stdout
        self._last = 0

    def tell(self, method: str, params: object, **more: object) -> None:
        self._send({"method": method, "params": params, **more})

    def _send(self, message: dict[str, object]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._sink.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    async def ask(self, method: str, params: object) -> str:
        """Send a request and return the message that answers it, as text."""
        self._last += 1
        self.tell(method, params, id=self._last)
        async with asyncio.timeout(PATIENCE_S):
            while True:
                head = await self._source.readuntil(b"\r\n\r\n")
                body = await self._source.readexactly(int(head.lower().partition(b"content-length:")[2].split()[0]))
                message = json.loads(body)
                if "method" in message and "id" in message:
                    self._send({"id": message["id"], "result": None})
                elif message.get("id") == self._last and "method" not in message:
                    return body.decode()


if __name__ == "__main__":
    rig.run(measure)
