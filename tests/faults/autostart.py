"""50 command lines at once where no daemon runs, or where one was killed: one daemon, and everybody gets an answer."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from tests.faults.row import Options, Row
from zotd import paths
from zotd.testing.live_daemon import place

COMMANDS = 50

ROUNDS = 10
"""How often it is done, in a home of its own each time: first where nothing is, then where the daemon was killed."""

ANSWER_S = 60.0
"""Longest wait for all of them: 50 interpreters on two cores take 5 s."""

WAYS = (
    ("status", "--autostart", "--json"),
    ("start", "--json"),
    ("sessions", "--json"),
    ("ping", "--autostart"),
)
"""Each starts the daemon; the first two say which process it is."""


@dataclass
class Outcome:
    """Of all rounds."""

    asked: int = 0
    answered: int = 0
    daemons: list[int] = field(default_factory=list)
    """How many there were after each time."""
    complaints: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """One daemon each time, and everybody got an answer from it."""
        return self.answered == self.asked and set(self.daemons) == {1} and not self.complaints


async def run(options: Options) -> Row:
    """Rounds one after the other."""
    start = time.monotonic()
    outcome = await measure(options)
    return Row(
        check=f"{COMMANDS} commands that all autostart the daemon, {2 * options.of(ROUNDS)} times, half of them after a kill",
        must_give=f"1 daemon, {COMMANDS} answers",
        got=f"{max(outcome.daemons)} daemon, {outcome.answered} answers of {outcome.asked}",
        ok=outcome.is_clean,
        command="python -m tests.faults autostart",
        seconds=time.monotonic() - start,
    )


async def measure(options: Options) -> Outcome:
    """So many rounds."""
    outcome = Outcome()
    for _ in range(options.of(ROUNDS)):
        with TemporaryDirectory(prefix="zot-") as folder:
            env = place(Path(folder)).env
            with _ended(env):
                pid = await _all_at_once(env, outcome)
                os.kill(pid, signal.SIGKILL)
                await _all_at_once(env, outcome)
    for complaint in outcome.complaints[:5]:
        options.say(f"autostart: {complaint}")
    return outcome


async def _all_at_once(env: Mapping[str, str], outcome: Outcome) -> int:
    """Run the commands; the daemon's pid."""
    async with asyncio.timeout(ANSWER_S), asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(_ask(way, env)) for way in islice(cycle(WAYS), COMMANDS)]
    answers = [task.result() for task in asked]
    outcome.asked += len(answers)
    outcome.answered += sum(code == 0 and bool(out) for code, out, _ in answers)
    outcome.complaints += [f"exit code {code}: {err}" for code, _, err in answers if code or err]
    told = {json.loads(out)["pid"] for _, out, _ in answers if '"pid"' in out}
    living = _daemons(env)
    outcome.daemons.append(len(living))
    if told != {process.pid for process in living}:
        outcome.complaints.append(f"they were answered by {told}, and {living} are there")
    outcome.complaints += _said(env)  # such as that there is a daemon already: nobody may even have tried
    return int(max(told))


async def _ask(way: tuple[str, ...], env: Mapping[str, str]) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "zotctl", *way), env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


def _said(env: Mapping[str, str]) -> list[str]:
    return Path(paths.start_log(env)).read_text(encoding="utf-8").splitlines()


def _daemons(env: Mapping[str, str]) -> list[psutil.Process]:
    """Those of this home."""
    found = []
    for process in psutil.process_iter():
        try:
            if "--autostarted" in process.cmdline() and process.environ().get("ZOT_HOME") == env["ZOT_HOME"]:
                found.append(process)
        except psutil.Error:  # it has ended, or is somebody else's
            continue
    return found


@contextmanager
def _ended(env: Mapping[str, str]) -> Iterator[None]:
    """No daemon is left behind."""
    try:
        yield
    finally:
        for process in _daemons(env):
            process.kill()
