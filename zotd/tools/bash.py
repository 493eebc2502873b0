"""The tool `bash`: runs a command in a shell and shows its output while it runs.

child ──bytes──> Progress   at most every PROGRESS_EVERY_S; of a flood only the newest
            └──> Capture    head and tail in memory; everything in a file as soon as the result must omit something
                    └────── pauses the child while the disk is behind
"""

import asyncio
import codecs
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from zotd.core.call_jail import CallJail
from zotd.core.closings import INTERRUPTED
from zotd.core.ports import Replay, ToolContext, ToolOutcome
from zotd.paths import make_private_dir
from zotd.process import Child, ChildLedger, descent, spawn
from zotd.tools.shared import TEXT_BYTES, TEXT_LINES, BuiltinTool, RunningCommand, ToolError, in_thread, text_outcome

PROGRESS_EVERY_S = 0.05
"""Shortest time between two progress texts; twenty a second look continuous."""

PROGRESS_BYTES = 16 * 1024
"""Longest progress text. People cannot read more, and it is sent to every client."""

BEHIND_BYTES = 1024 * 1024
"""Unwritten output at which the child is paused."""

NUL = "the command or the environment contains a NUL; leave it out"

REFUSED = "\n\n[The jail of this session has refused something to this command. It may not: {}.]"

NO_WAY = (
    "\n[Another command cannot do it either. Do it within the working directory or the temporary directory, or tell the user"
    " what is needed: the user can run the command with ! in zot, or choose another mode with /mode.]"
)
"""What the model is told if nothing is to be done about a refusal; that is decided later for what a person may allow."""

MOVED = "the user has sent this command to the background: it goes on as job {}, and you are told when it ends"

LOST = "the command ran in a terminal of the editor, which {}; what it had done stays done"

MISSING = "[… of the output, the editor has kept the last {:,} bytes …]\n"

ECHO_CHARS = 2_000
"""Longest excerpt of the command in the result."""


class BashArgs(msgspec.Struct, frozen=True):
    """Arguments of `bash`."""

    command: Annotated[str, Meta(description="The command, for bash -c (sh -c where there is no bash)")]
    timeout: (
        Annotated[float, Meta(gt=0, description="Seconds after which it is ended; default: no limit")] | UnsetType
    ) = UNSET
    background: Annotated[bool, Meta(description="Run it as a job: the call returns at once with the job's id")] = False
    keep: Annotated[bool, Meta(description="Of a job: it goes on when the session ends, and when zot is stopped")] = (
        False
    )


class CommandFinished(Struct, frozen=True):
    """The result of a command."""

    output: str
    """The output in the form of a result; ends with a newline unless empty."""
    code: int | None
    """Its exit code, 128 + N after signal N; None if it timed out."""
    took_s: float
    job: str = ""
    """The job that it has become, which goes on; empty: it has ended."""

    def told(self, command: str, ended: str = "") -> str:
        """Return the text for the model; `ended` replaces the exit code if the command was ended."""
        how = ended or f"exit {self.code}"
        return f"$ {_shortened(command)}\n\n{self.output}[{how}]  Took {self.took_s:.1f}s"


async def _bash(args: BashArgs, context: ToolContext) -> ToolOutcome:
    if args.background or args.keep:
        from zotd.tools.shared.background import begin_job  # noqa: PLC0415  (few sessions need it)

        return await begin_job(args, _argv(args.command, context), context)
    jail, patience = context.jail, asyncio.timeout(None if args.timeout is UNSET else args.timeout)
    finished: CommandFinished | None = None
    taken_back: Sequence[str] = ()
    if context.terminals is not None and jail is None and not context.lineage:
        try:
            finished = await _run_in_editor(args.command, context, patience)
        except _LostError as lost:
            return replace(text_outcome(str(lost), is_error=True), state="unknown")
    try:
        finished = finished or await run(args.command, context, patience)
    finally:
        if jail is not None and (finished is None or not finished.job):
            taken_back = jail.ended()
    if finished.job:
        return text_outcome(finished.told(args.command, MOVED.format(finished.job)))
    ended = f"timed out after {args.timeout} s, and ended with all that it had started"
    text = finished.told(args.command, ended if finished.code is None else "")
    if jail is None:
        return text_outcome(text, is_error=finished.code != 0)
    return await _with_refusals(text, finished, jail, taken_back)


async def _with_refusals(
    text: str, finished: CommandFinished, jail: CallJail, taken_back: Sequence[str]
) -> ToolOutcome:
    """Return the outcome with what is known of what the jail has refused.

    A command that has succeeded, or timed out, has not failed because of that, so no person is asked about it.
    """
    refused = [*taken_back, *await in_thread(lambda _: jail.refused(finished.output))]
    if not refused:
        return text_outcome(text, is_error=finished.code != 0)
    text += REFUSED.format("; ".join(refused))
    closed = await in_thread(lambda _: jail.closed_places(finished.output)) if finished.code else ()
    if not closed:
        return text_outcome(text + NO_WAY, is_error=finished.code != 0)
    return replace(text_outcome(text, is_error=True), closed=tuple(closed))


async def run(command: str, context: ToolContext, patience: asyncio.Timeout) -> CommandFinished:
    """Run a command; end it and all its processes when `patience` expires.

    Safe to cancel, which ends the command in the same way. Raises ToolError if it cannot be started.
    """
    capture = Capture(Path(context.out_dir, f"{context.call_id}.txt"))
    progress = OutputProgress(context.progress)

    spilling: asyncio.Task[None] | None = None

    def on_output(data: bytes) -> None:
        nonlocal spilling
        if running.take is not None:
            running.take(data)
            return
        capture.feed(data)
        progress.feed(data)
        if capture.is_long and spilling is None:
            spilling = group.create_task(capture.spill(child.resume_output))
        if capture.is_behind:
            child.pause_output()

    started = time.monotonic()
    child = _start(command, context, on_output)
    running = RunningCommand(command, context.out_dir, context.jail, child, capture.text, patience)
    if context.jobs is not None:
        context.jobs.movable[context.call_id] = running
    async with asyncio.TaskGroup() as group:
        # Long output is written in parallel with the command; the group waits until all of it is on disk before the
        # result is built.
        try:
            code = await _end_of(child, patience)
        finally:
            # In all cases: without it, `spill` would wait for ever and keep the group open.
            capture.end()
            progress.end()
            running.is_over = True
            if context.jobs is not None:
                del context.jobs.movable[context.call_id]
    return CommandFinished(capture.text(), code, time.monotonic() - started, running.job)


class _LostError(Exception):
    """It is not known how a command has ended in a terminal of the editor."""


async def _run_in_editor(command: str, context: ToolContext, patience: asyncio.Timeout) -> CommandFinished | None:
    """Run a command in a terminal of the editor, with the result that `run` has; None: nothing has run.

    Raises _LostError.
    """
    from zotd.tools.shared.terminal import OUTPUT_BYTES, run_in_terminal  # noqa: PLC0415  (few sessions need it)

    started = time.monotonic()
    found = await run_in_terminal(command, _argv(command, context), context, patience)
    if found is None:
        return None
    end = found.end
    if not found.has_expired and (end.error or end.code is None):
        raise _LostError(f"{INTERRUPTED}: {LOST.format(end.error or 'does not say how it has ended')}")
    capture = Capture(Path(context.out_dir, f"{context.call_id}.txt"))
    for note in (MISSING.format(OUTPUT_BYTES) if end.is_truncated else "", found.output):
        capture.feed(note.encode(errors="replace"))
    capture.end()
    if capture.is_long:
        await capture.spill(lambda: None)
    output = capture.text() + (f"[The editor {end.error}.]\n" if end.error else "")
    return CommandFinished(output, None if found.has_expired else end.code, time.monotonic() - started)


TOOL = BuiltinTool(
    BashArgs,
    _bash,
    name="bash",
    description=(
        "Run a shell command in the working directory, without a terminal or input. Gives its output, errors included, "
        f"and its exit code. Of long output the beginning and the end are shown ({TEXT_BYTES // 1024} KiB, {TEXT_LINES} "
        "lines), and the file that has all of it. For a server, or work that you need not wait for, set background. Processes "
        "started with & continue after the command; send their output to a file."
    ),
    parallel=False,
    replay=Replay.NEVER,
)


async def _end_of(child: Child, patience: asyncio.Timeout) -> int | None:
    """Return the exit code in the form of a shell, 128 + N after signal N; None if `patience` expired first."""
    with suppress(TimeoutError):
        # Leaving the block ends the child and its process group.
        async with patience, child:
            code = await child.wait()
            return code if code >= 0 else 128 - code
    return None


def _start(command: str, context: ToolContext, on_output: Callable[[bytes], None]) -> Child:
    try:
        # Recorded, so that the next daemon can end the command if this one is killed.
        ledger = ChildLedger.of(context.ledger) if context.ledger else None
        argv = _argv(command, context)
        child = spawn(argv, cwd=context.cwd, env=context.env, on_output=on_output, ledger=ledger, jail=context.jail)
    except OSError as error:
        where = f" in {context.cwd}" if error.filename == context.cwd else ""
        raise ToolError(f"the command could not be started{where}: {(error.strerror or '').lower()}") from error
    except ValueError as error:
        raise ToolError(NUL) from error
    # Marks what the command starts as a descendant that may read only this session.
    descent.belongs(child.pid, (context.session,))
    return child


def _argv(command: str, context: ToolContext) -> list[str]:
    # The session's PATH decides, not the daemon's: the sandbox recipe in docs/security.md replaces bash this way.
    path = context.env.get("PATH")
    shell = _found("bash", path) or _found("sh", path) or "/bin/sh"
    return [str(Path(context.cwd, shell)), "-c", command]


def _found(name: str, path: str | None) -> str | None:
    """Return what `shutil.which` returns, with a third of its system calls."""
    path = os.environ.get("PATH", os.defpath) if path is None else path
    for directory in path.split(os.pathsep) if path else ():
        program = f"{directory}/{name}" if directory else name
        if os.access(program, os.X_OK) and not Path(program).is_dir():
            return program
    return None


def _shortened(command: str) -> str:
    return command if len(command) <= ECHO_CHARS else command[:ECHO_CHARS] + " …"


class Capture:
    """The part of an output that a result shows, in constant memory.

    Short output is kept whole. If it becomes too long for a result, its beginning and end are kept and all of it is
    written to a file.
    """

    def __init__(self, path: Path) -> None:
        """Use the file `path` for long output; it is created on demand, with its directory."""
        self._path = path
        self._bytes = 0
        self._newlines = 0
        self._head = bytearray()
        """The whole output while it fits, then its beginning."""
        self._tail: bytearray | None = None
        """The end of an output that does not fit, else None."""
        self._pending = bytearray()
        """Bytes not yet written to the file."""
        self._more = asyncio.Event()
        self._has_ended = False
        self._file_error = ""

    @property
    def is_long(self) -> bool:
        """The output does not fit into a result, so `spill` has to write it."""
        return self._tail is not None

    @property
    def is_behind(self) -> bool:
        """Too much output is waiting for the disk."""
        return len(self._pending) > BEHIND_BYTES

    def feed(self, data: bytes) -> None:
        """Add a chunk of output."""
        self._bytes += len(data)
        self._newlines += data.count(b"\n")
        if self._tail is not None:
            self._tail += data
            # Beginning and end share the size of a result equally.
            del self._tail[: -TEXT_BYTES // 2]
            self._queue(data)
            return
        self._head += data
        if self._bytes > TEXT_BYTES or self._newlines > TEXT_LINES:
            self._queue(self._head)
            self._tail = self._head[-TEXT_BYTES // 2 :]
            del self._head[TEXT_BYTES // 2 :]

    def end(self) -> None:
        """Mark the end of the output."""
        self._has_ended = True
        self._more.set()

    async def spill(self, resume: Callable[[], None]) -> None:
        """Write waiting output to the file until the end; `resume` a paused child after each part."""
        while not self._has_ended or self._pending:
            await self._more.wait()
            self._more.clear()
            waiting, self._pending = self._pending, bytearray()
            # A full disk must not fail the command: its output is lost, and the result says so.
            if waiting and not self._file_error:
                await asyncio.to_thread(self._append, waiting)
            resume()

    def text(self) -> str:
        """Return the output in the form of a result; ends with a newline unless empty."""
        if self._tail is None:
            return _closed(self._head.decode(errors="replace"))
        # Cut at line ends, unless a single line is longer than the limit.
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
    """Shows output while it arrives: the first chunk at once, then at a limited rate; of a flood only the newest."""

    def __init__(self, show: Callable[[str], None]) -> None:
        """Call `show` with each text, on the event loop."""
        self._show = show
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def feed(self, data: bytes) -> None:
        """Add a chunk of output."""
        self._pending += data
        del self._pending[:-PROGRESS_BYTES]
        if self._timer is None:
            self._flush()

    def end(self) -> None:
        """Show the rest and stop the timer."""
        if self._timer:
            self._timer.cancel()
        self._emit(final=True)

    def _flush(self) -> None:
        self._timer = None
        if self._pending:
            self._emit()
            self._timer = self._loop.call_later(PROGRESS_EVERY_S, self._flush)

    def _emit(self, *, final: bool = False) -> None:
        # Incremental: a chunk may end in the middle of a character.
        text = self._decoder.decode(bytes(self._pending), final=final)
        self._pending.clear()
        if text:
            self._show(text)
