"""kill -9 of a daemon with 10 extensions that ignore everything and fork twice: what is left when it runs again?"""

import asyncio
import json
import os
import select
import signal
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.faults.row import Options, Row
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.wire_client import WireClient

EXTENSIONS = 10

PROCESSES = 3
"""Of each: see `tests.faults.stubborn`."""

ROUNDS = 5

START_S = 30.0
"""Longest wait for all of them to run: 10 interpreters on two cores take 1 s."""

GONE_S = 5.0
"""When nothing may be left, counted from the second start of the daemon."""

STUBBORN = Path(__file__).with_name("stubborn.py")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one kill."""

    survivors: int
    """Processes that the death of the daemon alone did not end."""
    strays: int
    """Processes that live when they must not any more."""
    seconds: float
    """From the second start to the end of the last one."""


async def run(options: Options) -> Row:
    """Rounds one after the other."""
    start = time.monotonic()
    outcomes = [await measure() for _ in range(options.of(ROUNDS))]
    strays = sum(outcome.strays for outcome in outcomes)
    survivors = sum(outcome.survivors for outcome in outcomes)
    slowest = max(outcome.seconds for outcome in outcomes)
    return Row(
        check=f"{EXTENSIONS} extensions that ignore everything and fork twice, kill -9 the daemon, start it again, "
        f"{len(outcomes)} times",
        must_give=f"0 strays after {GONE_S:g} s",
        got=f"{strays} strays; {survivors} had outlived the kill, the last of them was gone after {slowest:.1f} s",
        ok=strays == 0,
        command="python -m tests.faults strays",
        seconds=time.monotonic() - start,
    )


async def measure() -> Outcome:
    """One kill."""
    with TemporaryDirectory(prefix="zot-") as folder, ExitStack() as stack:
        daemon = DaemonProcess(Path(folder))
        pids = Path(folder, "pids")
        os.mkfifo(pids)
        for number in range(EXTENSIONS):
            _install(daemon.place.home / "extensions" / f"stubborn{number}", pids)
        stack.enter_context(daemon)
        processes = await _started(daemon, pids)
        for process in processes:
            stack.callback(_kill, process)
        daemon.end(signal.SIGKILL)
        survivors = len(_living(processes, wait_s=0))
        start = time.monotonic()
        daemon.start()
        left = await asyncio.to_thread(_living, processes, wait_s=GONE_S - (time.monotonic() - start))
        return Outcome(survivors, len(left), time.monotonic() - start)


def _install(directory: Path, pids: Path) -> None:
    directory.mkdir(parents=True)
    arguments = ["-S", str(STUBBORN), directory.name, str(pids)]
    manifest = {"name": directory.name, "exec": "python3", "args": arguments}
    (directory / "extension.json").write_text(json.dumps(manifest), encoding="utf-8")


async def _started(daemon: DaemonProcess, pids: Path) -> list[int]:
    """Descriptors of all their processes, when they run."""
    fifo = os.open(pids, os.O_RDWR | os.O_NONBLOCK)  # also to write: else it would be at its end before they come
    loop, said, more = asyncio.get_running_loop(), bytearray(), asyncio.Event()

    def read() -> None:
        said.extend(os.read(fifo, 4096))
        more.set()

    loop.add_reader(fifo, read)
    try:
        async with asyncio.timeout(START_S), WireClient.connect(daemon.place.socket) as client:
            options = {"cwd": str(daemon.place.cwd), "provider": "ollama", "model": "none"}
            await client.ask("session.create", **options, env={"PATH": daemon.place.env["PATH"]})
            while said.count(b"\n") < EXTENSIONS * PROCESSES:
                more.clear()
                await more.wait()
    finally:
        loop.remove_reader(fifo)
        os.close(fifo)
    return [os.pidfd_open(int(pid)) for pid in said.split()]


def _living(processes: Sequence[int], *, wait_s: float) -> set[int]:
    """Those that have not ended after so many seconds; earlier when all have."""
    living = set(processes)
    poll = select.poll()
    for process in living:
        poll.register(process, select.POLLIN)
    deadline = time.monotonic() + wait_s
    while living:
        ended = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        if not ended:
            return living
        for process, _ in ended:
            poll.unregister(process)
            living.remove(process)
    return living


def _kill(process: int) -> None:
    """Whatever the daemon has left, we do not leave it."""
    try:
        signal.pidfd_send_signal(process, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        os.close(process)
