"""The tool `bash`: one command in a shell, its output shown while it runs.

child ──bytes──> Progress   at most every PROGRESS_EVERY_S, only the newest of a flood
            └──> Capture    head and tail in memory; all of it in a file as soon as something must be left out
                    └────── pauses the child while the disk is behind
"""

import asyncio
import codecs
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from zotd.core.ports import Replay, ToolContext, ToolOutcome
from zotd.paths import make_private_dir
from zotd.process import Child, ChildLedger, descent, spawn
from zotd.tools.shared import TEXT_BYTES, TEXT_LINES, BuiltinTool, ToolError, text_outcome

PROGRESS_EVERY_S = 0.05
"""Shortest time between two pieces of progress: twenty a second look continuous."""

PROGRESS_BYTES = 16 * 1024
"""Most that one piece of progress shows; people cannot read more, and every client gets it."""

BEHIND_BYTES = 1024 * 1024
"""Output that may wait for the disk before the child is paused."""

ECHO_CHARS = 2_000
"""How much of the command the result repeats."""


class BashArgs(msgspec.Struct, frozen=True):
    """Arguments of `bash`."""

    command: Annotated[str, Meta(description="The command, for bash -c (sh -c where there is no bash)")]
    timeout: (
        Annotated[float, Meta(gt=0, description="Seconds after which it is ended; default: no limit")] | UnsetType
    ) = UNSET


@dataclass(frozen=True, slots=True)
class CommandFinished:
    """A command that is over."""

    output: str
    """As results show it; ends with a newline if there is any."""
    code: int | None
    """Its exit code, 128 + N after the signal N; None: it was ended, because nobody had the patience."""
    took_s: float

    def told(self, command: str, ended: str = "") -> str:
        """What a model is told of it; `ended` says how it ended, if not by itself."""
        how = ended or f"exit {self.code}"
        return f"$ {_shortened(command)}\n\n{self.output}[{how}]  Took {self.took_s:.1f}s"


async def _bash(args: BashArgs, context: ToolContext) -> ToolOutcome:
    finished = await run(args.command, context, asyncio.timeout(None if args.timeout is UNSET else args.timeout))
    ended = f"timed out after {args.timeout} s, and ended with all that it had started"
    text = finished.told(args.command, ended if finished.code is None else "")
    return text_outcome(text, is_error=finished.code != 0)


async def run(command: str, context: ToolContext, patience: asyncio.Timeout) -> CommandFinished:
    """Run a command to its end, or end it with all that it has started when `patience` has an end.

    Safe to cancel: it is then ended in the same way. Raises ToolError when it cannot be started.
    """
    capture = Capture(Path(context.out_dir, f"{context.call_id}.txt"))
    progress = OutputProgress(context.progress)

    def on_output(data: bytes) -> None:
        capture.feed(data)
        progress.feed(data)
        if capture.is_behind:
            child.pause_output()

    started = time.monotonic()
    child = _start(command, context, on_output)
    async with asyncio.TaskGroup() as group:
        group.create_task(capture.spill(child))
        try:
            code = await _end_of(child, patience)
        finally:
            capture.end()
            progress.end()
    return CommandFinished(capture.text(), code, time.monotonic() - started)


TOOL = BuiltinTool(
    BashArgs,
    _bash,
    name="bash",
    description=(
        "Run a shell command in the working directory, without a terminal or input. Gives its output, errors included, "
        f"and its exit code. Of long output the beginning and the end are shown ({TEXT_BYTES // 1024} KiB, {TEXT_LINES} "
        "lines), and the file that has all of it. What is started in the background with & goes on after the command; "
        "send its output to a file."
    ),
    parallel=False,
    replay=Replay.NEVER,
)


async def _end_of(child: Child, patience: asyncio.Timeout) -> int | None:
    """The exit code as a shell tells it, with 128 + N after the signal N; None: the patience had an end first."""
    with suppress(TimeoutError):
        async with patience, child:
            code = await child.wait()
            return code if code >= 0 else 128 - code
    return None


def _start(command: str, context: ToolContext, on_output: Callable[[bytes], None]) -> Child:
    path = context.env.get("PATH")
    shell = shutil.which("bash", path=path) or shutil.which("sh", path=path) or "/bin/sh"
    try:
        ledger = ChildLedger(Path(context.ledger)) if context.ledger else None
        argv = [shell, "-c", command]
        child = spawn(argv, cwd=context.cwd, env=context.env, on_output=on_output, ledger=ledger)
    except OSError as error:
        where = f" in {context.cwd}" if error.filename == context.cwd else ""
        raise ToolError(f"the command could not be started{where}: {(error.strerror or '').lower()}") from error
    except ValueError as error:
        raise ToolError("the command or the environment contains a NUL; leave it out") from error
    descent.belongs(child.pid, (context.session,))
    return child


def _shortened(command: str) -> str:
    return command if len(command) <= ECHO_CHARS else command[:ECHO_CHARS] + " …"


class Capture:
    """What a result shows of an output of any length; memory does not grow with it.

    Short output is kept as it is. As soon as it is too long for a result, its beginning and its end are kept, and
    all of it goes to a file.
    """

    def __init__(self, path: Path) -> None:
        """`path`: the file, made when it is needed, with its directory."""
        self._path = path
        self._bytes = 0
        self._newlines = 0
        self._head = bytearray()
        """Everything, as long as it fits."""
        self._tail: bytearray | None = None
        """The end, when not everything fits."""
        self._pending = bytearray()
        """For the file."""
        self._more = asyncio.Event()
        self._has_ended = False
        self._file_error = ""

    @property
    def is_behind(self) -> bool:
        """More waits for the disk than should."""
        return len(self._pending) > BEHIND_BYTES

    def feed(self, data: bytes) -> None:
        """The next piece of output."""
        self._bytes += len(data)
        self._newlines += data.count(b"\n")
        if self._tail is not None:
            self._tail += data
            del self._tail[: -TEXT_BYTES // 2]
            self._queue(data)
            return
        self._head += data
        if self._bytes > TEXT_BYTES or self._newlines > TEXT_LINES:
            self._queue(self._head)
            self._tail = self._head[-TEXT_BYTES // 2 :]
            del self._head[TEXT_BYTES // 2 :]

    def end(self) -> None:
        """There is no more output."""
        self._has_ended = True
        self._more.set()

    async def spill(self, child: Child) -> None:
        """Write to the file what belongs there, until the end; a child that was paused goes on."""
        while not self._has_ended or self._pending:
            await self._more.wait()
            self._more.clear()
            waiting, self._pending = self._pending, bytearray()
            if waiting and not self._file_error:
                await asyncio.to_thread(self._append, waiting)
            child.resume_output()

    def text(self) -> str:
        """The output as a result shows it; ends with a newline if there is any."""
        if self._tail is None:
            return _closed(self._head.decode(errors="replace"))
        # Whole lines, unless one alone is longer than that.
        head, tail = bytes(self._head), bytes(self._tail)
        head = head[: head.rfind(b"\n") + 1] or head
        tail = tail[tail.find(b"\n", 0, -1) + 1 :]
        first = b"\n".join(head.split(b"\n", TEXT_LINES // 2)[: TEXT_LINES // 2])
        last = b"\n".join(tail.removesuffix(b"\n").rsplit(b"\n", TEXT_LINES // 2)[-TEXT_LINES // 2 :])
        whole = (
            f"all of it could not be kept: {self._file_error}" if self._file_error else f"all of it is in {self._path}"
        )
        size = f"{self._bytes:,} bytes, {self._newlines:,} lines"
        note = f"[… the middle of {size} is left out; {whole} …]\n"
        return _closed(first.decode(errors="replace")) + note + _closed(last.decode(errors="replace"))

    def _queue(self, data: bytes | bytearray) -> None:
        if not self._file_error:
            self._pending += data
            self._more.set()

    def _append(self, data: bytearray) -> None:
        try:
            make_private_dir(str(self._path.parent))
            with os.fdopen(
                os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "wb"
            ) as file:
                file.write(data)
        except OSError as error:
            self._file_error = f"{self._path}: {(error.strerror or '').lower()}"


def _closed(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


class OutputProgress:
    """Shows output while it comes, at once and then not too often; of a flood only the newest."""

    def __init__(self, show: Callable[[str], None]) -> None:
        """`show` is called on the event loop."""
        self._show = show
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def feed(self, data: bytes) -> None:
        """The next piece of output."""
        self._pending += data
        del self._pending[:-PROGRESS_BYTES]
        if self._timer is None:
            self._flush()

    def end(self) -> None:
        """Show what is left."""
        if self._timer:
            self._timer.cancel()
        self._emit(final=True)

    def _flush(self) -> None:
        self._timer = None
        if self._pending:
            self._emit()
            self._timer = self._loop.call_later(PROGRESS_EVERY_S, self._flush)

    def _emit(self, *, final: bool = False) -> None:
        text = self._decoder.decode(bytes(self._pending), final=final)
        self._pending.clear()
        if text:
            self._show(text)
