"""Stopping extensions that ignore `shutdown`, the end of their input and SIGTERM; each has a child that lives on."""

import time
from functools import partial

import psutil

from benchmarks import extensions_rig, rig
from benchmarks.rig import Row
from zotd.core.supervision import LEAVE_S, TERM_S
from zotd.wire import api

COUNTS = (5, 20)

ROUNDS = 3

TARGET_S = 3.3

PATIENCE_S = LEAVE_S + TERM_S

FLOOR = "what they are given until SIGKILL"


async def measure() -> list[Row]:
    """For each number of extensions a row for their host, then one for a whole daemon."""
    stops = await rig.in_turns(ROUNDS, {str(count): partial(_host, count) for count in COUNTS}, warm_up=0)
    rows = [_row(f"stop of {count} wedged extensions", rig.median(stops[str(count)])) for count in COUNTS]
    return [*rows, _row(f"SIGTERM to the end of a daemon with {COUNTS[-1]} of them", await _daemon(COUNTS[-1]))]


def _row(measure: str, taken_s: float) -> Row:
    return Row(measure, taken_s, "s", PATIENCE_S, FLOOR, f"<= {TARGET_S:g} s", taken_s <= TARGET_S)


async def _host(count: int) -> float:
    with rig.place() as place:
        for number in range(count):
            extensions_rig.misbehaving(place, f"wedged-{number}", "stubborn")
        async with extensions_rig.hosting(place) as host:
            children = psutil.Process().children(recursive=True)
            start = time.perf_counter()
            await host.stop()
            taken = time.perf_counter() - start
    _check(children)
    return taken


async def _daemon(count: int) -> float:
    with rig.place() as place:
        for number in range(count):
            extensions_rig.misbehaving(place, f"wedged-{number}", "stubborn")
        async with rig.daemon(place) as process, rig.connect(place) as client:
            session = await client.create(str(place.cwd), provider="anthropic", api_key="none", ephemeral=True)
            # A command waits until all are ready. Not a prompt: it would load a vendor's SDK, which takes Python 0.5 s
            # to take down at its end.
            await client.ask(api.RunCommand(session=session.id, name="wedged-0"), api.CommandResult)
            children = process.children(recursive=True)
            start = time.perf_counter()
        taken = time.perf_counter() - start
    if len(children) < 2 * count:
        raise RuntimeError(f"only {len(children)} of {2 * count} processes had been started")
    _check(children)
    return taken


def _check(children: list[psutil.Process]) -> None:
    alive = [child.pid for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
    if alive:
        raise RuntimeError(f"{len(alive)} processes of extensions are left: {alive}")


if __name__ == "__main__":
    rig.run(measure)
