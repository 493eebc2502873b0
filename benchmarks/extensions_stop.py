"""Stopping extensions that ignore `shutdown`, the end of their input and SIGTERM; each has a child that lives on."""

import asyncio
import os
import signal
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

LOOK_S = 0.005

FLOOR = "what they are given until SIGKILL"


async def measure() -> list[Row]:
    """Rows for a host with each number of extensions, then for a whole daemon."""
    probes = {str(count): partial(_host, count) for count in COUNTS}
    taken = await rig.in_turns(ROUNDS, {**probes, "daemon": partial(_daemon, COUNTS[-1])}, warm_up=0)
    seconds = {name: rig.median(samples) for name, samples in taken.items()}
    return [
        *(_row(f"stop of {count} wedged extensions", seconds[str(count)]) for count in COUNTS),
        _row(f"SIGTERM to a daemon with {COUNTS[-1]} of them, until none is left", seconds["daemon"]),
    ]


def _row(measure: str, taken_s: float) -> Row:
    return Row(measure, taken_s, "s", PATIENCE_S, FLOOR, f"<= {TARGET_S:g} s", taken_s <= TARGET_S)


async def _host(count: int) -> float:
    with rig.place() as place:
        for number in range(count):
            extensions_rig.misbehaving(place, f"wedged-{number}", "stubborn")
        async with extensions_rig.hosting(place) as host:
            children = _children(psutil.Process(), count)
            start = time.perf_counter()
            await host.stop()
            await _until_gone(children)
            return time.perf_counter() - start


async def _daemon(count: int) -> float:
    with rig.place() as place:
        for number in range(count):
            extensions_rig.misbehaving(place, f"wedged-{number}", "stubborn")
        async with rig.daemon(place) as process, rig.connect(place) as client:
            session = await client.create(str(place.cwd), provider="anthropic", api_key="none", ephemeral=True)
            for number in range(count):  # an answer: it is ready
                await client.ask(api.RunCommand(session=session.id, name=f"wedged-{number}"), api.CommandResult)
            children = _children(process, count)
            start = time.perf_counter()
            os.kill(process.pid, signal.SIGTERM)
            # Not until its own end: then Python takes down a vendor's SDK, which takes half a second more.
            await _until_gone(children)
            return time.perf_counter() - start


def _children(process: psutil.Process, extensions: int) -> list[psutil.Process]:
    """The processes of so many extensions, and theirs."""
    children = process.children(recursive=True)
    if len(children) < 2 * extensions:
        raise RuntimeError(f"{extensions} extensions and their children are {len(children)} processes only")
    return children


async def _until_gone(processes: list[psutil.Process]) -> None:
    async with asyncio.timeout(rig.STOP_S):
        for process in processes:
            while not _has_ended(process):  # noqa: ASYNC110  (grandchildren: nothing reports their ends)
                await asyncio.sleep(LOOK_S)


def _has_ended(process: psutil.Process) -> bool:
    """Also as a zombie: a grandchild is for pid 1 to bury."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


if __name__ == "__main__":
    rig.run(measure)
