"""Jobs as tools see them, and what a model reads of them. A job is a command that runs in the background of its session."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from zotd.core.call_jail import CallJail
from zotd.wire.jobs import ENDED, INTERRUPTED, RUNNING, JobInfo

TITLE_CHARS = 100
"""Longest excerpt of a command in a sentence about its job."""


NOT_STARTED = 126
"""The exit code of a command that could not be started, as shells have it."""

BY_MODEL = "stopped by the model"
"""Why a job ends that the model stops; it is not told of that again."""

NONE_HERE = "there can be no jobs here: run the command without background"


class JobError(Exception):
    """There is no such job, or none can be begun; the message is one sentence for the model."""


class JobOrder(Struct, frozen=True):
    """A command that is to run in the background."""

    call: str
    """The id of the tool call."""
    command: str
    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    out_dir: str
    """The directory for the file of its output."""
    jail: CallJail | None
    """What confines it; None: nothing does."""
    keep: bool = False
    """It goes on when the session or the daemon ends."""


class MovableCommand(Protocol):
    """A command of a call that runs, and that a person can send to the background."""

    @property
    def command(self) -> str:
        """The command."""
        ...

    @property
    def out_dir(self) -> str:
        """The directory for the file of its output."""
        ...

    @property
    def jail(self) -> CallJail | None:
        """What confines it; None: nothing does."""
        ...

    @property
    def has_ended(self) -> bool:
        """Whether it is too late: the command, or its call, has ended, or it was sent there already."""
        ...


class JobDesk(Protocol):
    """The jobs of one session. Its methods raise JobError, and StorageError when the journal cannot be written."""

    movable: dict[str, MovableCommand]
    """By the id of the call: those that `bash` runs now. Not a method, because each call of `bash` comes here."""

    async def begin(self, order: JobOrder) -> str:
        """Start a job, which is on record before its process starts; returns what the model is told.

        Raises OSError or ValueError as well if the command could not be started.
        """
        ...

    async def output(self, job: str) -> str:
        """Return what the job has printed since the model last read of it, and its state."""
        ...

    async def wait(self, job: str, pattern: str, at_most_s: float) -> str:
        """Return the same when the job has ended, a line fits `pattern`, or the time is over."""
        ...

    async def end(self, job: str, reason: str) -> None:
        """End the job with all that it has started, and wait until that is on record. Does nothing if it does not run."""
        ...


def title_of(job: JobInfo) -> str:
    """Return the id and the first line of the command, such as `j1 (npm run dev)`."""
    line = " ".join(job.command.split())
    return f"{job.id} ({line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1] + '…'})"


def state_of(job: JobInfo) -> str:
    """Return what is known of the job as a clause, such as `has ended: exit 0, after 3.1 s`."""
    took = "" if job.took_s is None else f", after {job.took_s:.1f} s"
    ports = f", and listens on {_listed(job.ports)}" if job.ports else ""
    if job.state == RUNNING:
        return f"is running{ports}"
    if job.state == INTERRUPTED:
        return "was interrupted, outcome unknown: zot was killed while it ran; it does not run any more"
    code = "exit code unknown" if job.exit is None else f"exit {job.exit}"
    if job.state == ENDED:
        return f"could not be started: {job.reason}" if job.reason else f"has ended: {code}{took}"
    return f"was {job.reason or 'stopped'}: {code}{took}"


def end_note(job: JobInfo, refusals: str = "") -> str:
    """Return what the model reads when a job has ended."""
    return f"[Job {title_of(job)} {state_of(job)}. job_output gives the rest of its output.{refusals}]"


def _listed(ports: Sequence[int]) -> str:
    return f"port{'s' if len(ports) > 1 else ''} {', '.join(map(str, ports))}"
