"""Programs that a template process forks, beside the same programs started cold: what people and editors wait for.

The column of the floor is bare Python, `python -c pass`. The figures of the original, in Go, were measured once on the
machine of `docs/performance.md`.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path

import psutil

from benchmarks import floors, rig
from benchmarks.rig import Place, Row
from benchmarks.rpc import Rpc
from benchmarks.terminal import Terminal
from zotd.template.client import SWITCH
from zotd.testing import warm

ROUNDS = 15

PLAN = "deltas/1"

KEYS = "xyzzy"
"""Typed before the client runs; no other text has them."""

DRAWN = f"❯ {KEYS}"
"""As the client draws them; before it runs, the kernel echoes them alone."""

READY_S = 60.0
"""Longest wait for the template process, which takes 2 s."""

LOOK_S = 0.05

PROGRAMS: Mapping[str, tuple[str, float, str]] = {
    "rpc: start to the first answer": ("`zot rpc`, start to the first answer", 25, "the original: 22 ms"),
    "rpc: start to the first delta": ("`zot rpc`, start to the first delta", 35, "the original: 24 ms"),
    "rpc: end of input to exit": ("`zot rpc`, end of input to exit", 5, "the original: 3 ms"),
    "key": ("`zot` on a terminal, start to a typed key drawn", 60, "the terminal answers its questions at once"),
    "prompt": ("`zot -p`, daemon warm", 30, "the original: 21 ms"),
    "ping": ("`zotctl ping`, which always starts cold", 20, ""),
    "version": ("`zot --version`", 0, "the original: 22 ms"),
}
"""Name of the row, target in milliseconds (0: 1.3 x bare Python), and the original's figure."""

Samples = dict[str, float]


async def measure() -> list[Row]:
    """A row for each program, and rows for memory."""
    async with rig.world() as world, _template(world.place) as env:
        cold = dict(world.place.env)
        await world.session("anthropic", PLAN)  # the daemon is warm: it has loaded the vendor's SDK
        url = rig.base_url(world.model, "openai", PLAN)
        taken: dict[str, list[Samples]] = {"warm": [], "cold": []}
        bare: list[float] = []
        for _ in range(ROUNDS):
            bare.append(floors.bare_python() * 1000)
            for kind, variables in (("warm", env), ("cold", cold)):
                taken[kind].append(await _sample(variables, world.place, url))
        memory = [await _memory_of_rpc(env, world.place, url), {"terminal": _memory_of_terminal(env, world.place)}]
    floor = rig.median(bare)
    rows = [_row(name, taken, floor) for name in PROGRAMS]
    return [*rows, *(_memory_row(name, mib) for found in memory for name, mib in found.items())]


def _row(name: str, taken: Mapping[str, list[Samples]], floor: float) -> Row:
    title, target, original = PROGRAMS[name]
    warm_ms, cold_ms = (rig.median([sample[name] for sample in taken[kind]]) for kind in ("warm", "cold"))
    limit = target or 1.3 * floor
    text = f"<= {target:g} ms" if target else "<= 1.3 x bare Python"
    note = "; ".join(filter(None, [f"cold: {cold_ms:.3g} ms", original]))
    return Row(title, warm_ms, "ms", floor, "bare Python", text, warm_ms <= limit, note=note)


MEMORY: Mapping[str, tuple[str, float, float | None]] = {
    "answer": ("own memory of a `zot rpc` after its first answer", 8, 6.4),
    "prompt": ("own memory of a `zot rpc` after a prompt", 15, 6.4),
    "terminal": ("own memory of `zot` on a terminal", 10, None),
}
"""Name of the row, target in MiB, and what a process of the original takes."""


def _memory_row(name: str, mib: float) -> Row:
    title, target, original = MEMORY[name]
    note = "the fork and its client: pages that no other process has"
    return Row(title, mib, "MiB", original, "the original", f"<= {target:g} MiB", mib <= target, note=note)


@asynccontextmanager
async def _template(place: Place) -> AsyncIterator[Mapping[str, str]]:
    """Variables with which the installed commands are forks of a template process of this measurement."""
    env = {name: value for name, value in place.env.items() if name != SWITCH}
    try:
        floors.spawn(*rig.installed("zotctl", "completion", "bash"), env=env)
        await asyncio.to_thread(_wait_for_socket, Path(env["XDG_RUNTIME_DIR"]))
        yield env
    finally:
        warm.end_serving(Path(env["XDG_RUNTIME_DIR"]))


def _wait_for_socket(folder: Path) -> None:
    deadline = time.monotonic() + READY_S
    while not list(folder.glob("zot/template-*.sock")):
        if time.monotonic() > deadline:
            raise TimeoutError("the template process does not start")
        time.sleep(LOOK_S)


async def _sample(env: Mapping[str, str], place: Place, url: str) -> Samples:
    variables = dict(env)
    flags = ["--provider", "openai", "--base-url", url, "--api-key", "none", "--cwd", str(place.cwd)]
    found = await _rpc(variables, flags)
    for name, command in (
        ("prompt", rig.installed("zot", "-p", *flags, "--no-session", "hello")),
        ("ping", rig.installed("zotctl", "ping")),
        ("version", rig.installed("zot", "--version")),
    ):
        found[name] = floors.spawn(*command, env=variables) * 1000
    found["key"] = _key_s(variables, place) * 1000
    return found


async def _rpc(env: Mapping[str, str], flags: list[str]) -> Samples:
    start = time.perf_counter()
    async with Rpc.start(env, flags) as program:
        await program.send(type="ping", id="1")
        await program.until("response")
        answered = time.perf_counter()
        await program.send(type="prompt", id="2", message="go")
        await program.until("text_delta")
        delta = time.perf_counter()
        await program.until("done")
        ending = time.perf_counter()
        await program.end()
        ended = time.perf_counter()
    return {
        "rpc: start to the first answer": (answered - start) * 1000,
        "rpc: start to the first delta": (delta - start) * 1000,
        "rpc: end of input to exit": (ended - ending) * 1000,
    }


async def _memory_of_rpc(env: Mapping[str, str], place: Place, url: str) -> Samples:
    """What one more session takes: pages that neither the template process nor another session has, in MiB."""
    flags = ["--provider", "openai", "--base-url", url, "--api-key", "none", "--cwd", str(place.cwd)]
    async with Rpc.start(env, flags) as program:
        await program.send(type="ping", id="1")
        await program.until("response")
        answered = _own_mib(env, program.process.pid)
        await program.send(type="prompt", id="2", message="go")
        await program.until("done")
        return {"answer": answered, "prompt": _own_mib(env, program.process.pid)}


def _memory_of_terminal(env: Mapping[str, str], place: Place) -> float:
    with closing(_terminal(env, place)) as terminal:
        terminal.wait(DRAWN)
        return _own_mib(env, terminal.process.pid)


def _own_mib(env: Mapping[str, str], client: int) -> float:
    servers = warm.serving(Path(env["XDG_RUNTIME_DIR"]))
    forks = [child for server in servers for child in server.children() if child.name() == "zot"]
    return sum(one.memory_full_info().uss for one in (*forks, psutil.Process(client))) / 1024**2


def _key_s(env: Mapping[str, str], place: Place) -> float:
    with closing(_terminal(env, place)) as terminal:
        return terminal.wait(DRAWN) - terminal.started


def _terminal(env: Mapping[str, str], place: Place) -> Terminal:
    """`zot` on a terminal, with keys that are typed before it has read any."""
    terminal = Terminal(*rig.installed("zot", "--new", "--cwd", str(place.cwd)), env=env)
    terminal.send(KEYS)
    return terminal


if __name__ == "__main__":
    rig.run(measure)
