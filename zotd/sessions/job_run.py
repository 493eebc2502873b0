"""A job while its process lives: its output, and those who wait for something in it. Loaded with the first job."""

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from zotd.core.call_jail import CallJail
from zotd.core.jobs import JobOrder
from zotd.core.output_pattern import LineFinder
from zotd.process.background import start_in_background
from zotd.process.bounded_output import BoundedOutput, OutputPart
from zotd.process.moved import MovedCommand
from zotd.process.orphan_reaper import OrphanReaper
from zotd.sessions.background_task import BackgroundTask, TaskWork
from zotd.tools.shared import TEXT_BYTES, TEXT_LINES, RunningCommand, in_thread
from zotd.wire.jobs import ENDED, STOPPED, JobInfo

MIB = 1024 * 1024

SEARCHED_BYTES = 1 * MIB
"""How much of what came before a wait is searched: the end of it."""

HALF_BYTES, HALF_LINES = TEXT_BYTES // 2, TEXT_LINES // 2

ANSWER = " Its answer:\n\n{}\n"

REFUSALS = " The jail of this session has refused something to it. It may not: {}."


class JobOutput(Protocol):
    """What a job has printed; see `BoundedOutput`."""

    @property
    def path(self) -> Path:
        """The file with the newest part."""
        ...

    @property
    def total(self) -> int:
        """Bytes that have come."""
        ...

    @property
    def failure(self) -> str:
        """Why a part could not be kept; empty: nothing is lost."""
        ...

    async def written(self) -> None:
        """Wait until all that has come can be read."""
        ...

    def read(self, start: int, limit_bytes: int) -> OutputPart:
        """Return a part from offset `start` on, or from the first that is kept. Blocks."""
        ...


class JobCommand(Protocol):
    """What runs: a command, or a subagent."""

    @property
    def output(self) -> JobOutput:
        """What it prints."""
        ...

    @property
    def pid(self) -> int:
        """Of the leader of its process group; 0: there is no process."""
        ...

    @property
    def code(self) -> int | None:
        """Its exit code once it has ended; None: it is not known."""
        ...

    @property
    def mark(self) -> str:
        """Value of `census.MARK` in all that it has started; empty: it has none."""
        ...

    async def follow(self) -> None:
        """Return when it has ended, and its output is on disk."""
        ...

    async def stop(self) -> None:
        """End it; `follow` returns soon after."""
        ...


class JobRun:
    """One running job. Used on one event loop."""

    def __init__(self, info: JobInfo, command: JobCommand, jail: CallJail | None, waiters: "set[_Waiter]") -> None:
        """`waiters` are given each chunk of the output by the caller."""
        self.command = command
        self.reason = ""
        """Who stops it, or why; empty: it is not being stopped."""
        self.ports: list[int] = []
        """TCP ports on which it listens, as they were found last."""
        self.over = asyncio.Event()
        """Its end is decided, and is being recorded."""
        self._info = info
        self._jail = jail
        self._waiters = waiters
        self._began = time.monotonic()

    @property
    def info(self) -> JobInfo:
        """The job as it is now."""
        total = self.command.output.total
        return replace(self._info, output_bytes=total, took_s=self.took_s, ports=self.ports)

    @property
    def output(self) -> JobOutput:
        """What it prints."""
        return self.command.output

    @property
    def outlasts(self) -> bool:
        """Whether the next daemon goes on with it, so that nothing is recorded now."""
        return False

    def leave(self) -> None:
        """Let a kept job go on without this object: `JobCommand.follow` returns. Other jobs are left alone."""

    def listens_on(self, ports: list[int]) -> bool:
        """Keep the ports that were found; returns whether they are others than before."""
        before, self.ports = self.ports, ports
        return before != ports

    def end(self) -> None:
        """Wake those who wait: its end is being recorded."""
        self.over.set()
        for waiter in self._waiters:
            waiter.woken.set()

    def ended(self) -> JobInfo:
        """Return the job as it has ended."""
        state = STOPPED if self.reason else ENDED
        return replace(self.info, state=state, exit=self.command.code, reason=self.reason, ports=[])

    async def addition(self) -> str:
        """Return what the model reads beside how it has ended: what the jail has refused it, as a sentence; empty: nothing."""
        jail = self._jail
        if jail is None:
            return ""
        taken_back = jail.ended()
        end = await in_thread(lambda _: self.output.read(max(0, self.output.total - TEXT_BYTES), TEXT_BYTES))
        text = end.data.decode(errors="replace")
        refused = [*taken_back, *await in_thread(lambda _: jail.refused(text))]
        return REFUSALS.format("; ".join(refused)) if refused else ""

    async def wait(self, finder: LineFinder | None, start: int, at_most_s: float) -> str | None:
        """Return a line that fits, or None when the job has ended or the time is over. What comes from `start` on counts."""
        waiter = _Waiter(finder, self.output.total)
        self._waiters.add(waiter)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(at_most_s):
                    await self.output.written()
                    start = max(start, self.output.total - SEARCHED_BYTES)
                    part = await in_thread(lambda _: self.output.read(start, SEARCHED_BYTES))
                    waiter.catch_up(part)
                    await waiter.woken.wait()
        finally:
            self._waiters.discard(waiter)
        return waiter.line

    @property
    def took_s(self) -> float:
        """How long it has run, in seconds."""
        return round(time.monotonic() - self._began, 3)


class _Waiter:
    """Looks for a line in what came before, and then in what comes."""

    def __init__(self, finder: LineFinder | None, since: int) -> None:
        """`since`: how much has come before."""
        self.line: str | None = None
        self.woken = asyncio.Event()
        self._finder = finder
        self._since = since
        self._later: bytearray | None = bytearray()
        """What comes before `catch_up`."""

    def catch_up(self, before: OutputPart) -> None:
        """Look at what came before; it may have the beginning of what came since."""
        later, self._later = self._later, None
        known = max(0, before.start + len(before.data) - self._since)
        self.came(before.data)
        self.came(bytes(later or b"")[known:])

    def came(self, data: bytes) -> None:
        if self._later is not None:
            self._later += data
            del self._later[:-SEARCHED_BYTES]
        elif self._finder is not None and self.line is None and (line := self._finder.feed(data)) is not None:
            self.line = line
            self.woken.set()


def start_job(
    info: JobInfo,
    order: JobOrder,
    reaper: OrphanReaper,
    *,
    session: str,
    output_mb: int,
    printed: Callable[[], None],
) -> JobRun:
    """Start the process of a job; the caller runs `BackgroundCommand.follow`. `printed` is called at each output.

    Raises OSError or ValueError if it cannot be started, and what the jail raises.
    """
    waiters: set[_Waiter] = set()
    command = start_in_background(
        order.argv,
        cwd=order.cwd,
        env=order.env,
        output=BoundedOutput(Path(info.output), output_mb * MIB),
        claim=reaper.claim(f"job {info.id} of {session}", (session,)),
        jail=order.jail,
        came=partial(_came, waiters, printed),
    )
    return JobRun(info, command, order.jail, waiters)


def move_job(info: JobInfo, running: RunningCommand, *, output_mb: int, printed: Callable[[], None]) -> JobRun:
    """Have a command that runs go on as a job; the caller runs `MovedCommand.follow`. It has not ended."""
    waiters: set[_Waiter] = set()
    output = BoundedOutput(Path(info.output), output_mb * MIB)
    command = MovedCommand(running.child, output, partial(_came, waiters, printed))
    command.take(running.hand_over(info.id, command.take).encode(errors="replace"))
    return JobRun(info, command, running.jail, waiters)


def follow_task(info: JobInfo, work: TaskWork, *, output_mb: int, printed: Callable[[], None]) -> JobRun:
    """Have a subagent work as a job; the caller runs `BackgroundTask.follow`."""
    waiters: set[_Waiter] = set()
    output = BoundedOutput(Path(info.output), output_mb * MIB)
    return TaskRun(info, BackgroundTask(work, output, partial(_came, waiters, printed)), waiters)


class TaskRun(JobRun):
    """A subagent that works as a job."""

    def __init__(self, info: JobInfo, task: BackgroundTask, waiters: "set[_Waiter]") -> None:
        super().__init__(info, task, None, waiters)
        self._task = task

    @property
    def outlasts(self) -> bool:
        """See `JobRun`: it was cut by the end of the daemon."""
        return self._task.code is None

    async def addition(self) -> str:
        """Return its answer."""
        return ANSWER.format(self._task.answer)


def _came(waiters: "set[_Waiter]", printed: Callable[[], None], data: bytes) -> None:
    printed()
    for waiter in waiters:
        waiter.came(data)


def unread(output: JobOutput, start: int) -> str:
    """Return what came from offset `start` on, in the form of a result: the middle of a long one is left out. Blocks."""
    total = output.total
    first = output.read(start, HALF_BYTES)
    data, at = first.data, first.start + len(first.data)
    last = output.read(max(at, total - HALF_BYTES), HALF_BYTES)
    skipped = last.start - at
    head, tail = _cut(data.decode(errors="replace"), last.data.decode(errors="replace"), is_whole=not skipped)
    lost = f"[{first.start - start:,} bytes before this are not kept]\n" if first.start > start else ""
    if output.failure:
        lost += f"[a part could not be kept: {output.failure}]\n"
    note = (
        ""
        if tail is None
        else f"[… the middle of {total - start:,} bytes is left out; the newest are in {output.path} …]\n"
    )
    return lost + head + note + (tail or "")


def _cut(head: str, tail: str, *, is_whole: bool) -> tuple[str, str | None]:
    """Return the lines to show; None: the first text has all of it."""
    lines = (head + tail).splitlines(keepends=True)
    if is_whole and len(lines) <= TEXT_LINES:
        return _closed(lines), None
    first, last = (lines, lines) if is_whole else (head.splitlines(keepends=True), tail.splitlines(keepends=True))
    return _closed(first[:HALF_LINES]), _closed(last[-HALF_LINES:])


def _closed(lines: Iterable[str]) -> str:
    text = "".join(lines)
    return text if not text or text.endswith("\n") else text + "\n"
