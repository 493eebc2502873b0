"""The words of `core.supervision`: what it hears about an extension, what it orders, what people see.

Reasons are written to go on from the extension's name: "exited with code 3", "sent no hello within 5 s".
"""

from enum import StrEnum

from msgspec import Struct


class ExtensionState(StrEnum):
    """What people see of an extension."""

    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    """It crashed and waits for its next try."""
    PARKED = "parked"
    """It crashed too often; only a reload starts it again."""
    STOPPING = "stopping"


class Phase(StrEnum):
    """How far a process is."""

    GREETING = "greeting"
    SETTLING = "settling"
    READY = "ready"
    CLOSED = "closed"
    DRAINING = "draining"
    LEAVING = "leaving"
    TERMINATED = "terminated"
    KILLED = "killed"


ENDING = frozenset({Phase.LEAVING, Phase.TERMINATED, Phase.KILLED})
"""Phases in which only the exit matters."""


# --- inputs ---------------------------------------------------------------------------------------------------


class StartRequested(Struct, frozen=True):
    """Request: the extension should run."""


class Stop(Struct, frozen=True):
    """Request: the extension should stop."""


class Reload(Struct, frozen=True):
    """A new process should take over; answered by `ReloadsDone`.

    `replace`: the old process ends before the new one starts.
    """

    replace: bool = False


class Greeted(Struct, frozen=True):
    """The process said `hello`.

    `says_ready`: it announced that it will say when it is ready, so silence before that means nothing.
    """

    process: int
    name: str
    says_ready: bool = False


class FrameReceived(Struct, frozen=True):
    """The process sent another frame, of this type."""

    process: int
    type: str


class Closed(Struct, frozen=True):
    """The process has closed its end of a pipe, which is often the first sign of its exit."""

    process: int
    pipe: str = "stdout"


class Broke(Struct, frozen=True):
    """The process cannot be talked to any more; `reason` goes on from its name."""

    process: int
    reason: str


class Exited(Struct, frozen=True):
    """The process has ended, or could not be started; `reason` goes on from its name."""

    process: int
    reason: str


class Drained(Struct, frozen=True):
    """The last call of a draining process has ended."""

    process: int


class Tick(Struct, frozen=True):
    """The time in `Supervision.wake_at` has come; deadlines are checked."""


FromProcess = Greeted | FrameReceived | Closed | Broke | Exited | Drained

Input = StartRequested | Stop | Reload | Tick | FromProcess

# --- actions --------------------------------------------------------------------------------------------------


class Spawn(Struct, frozen=True):
    """Start a process; tell Exited if that fails."""

    process: int


class Greet(Struct, frozen=True):
    """Send `hello_ack` to the process."""

    process: int


class Serve(Struct, frozen=True):
    """What this process registers is offered, and new calls go to it."""

    process: int


class Withdraw(Struct, frozen=True):
    """The extension offers nothing, and nobody serves."""

    reason: str


class Fail(Struct, frozen=True):
    """The process's calls in flight end with this reason."""

    process: int
    reason: str


class DrainProcess(Struct, frozen=True):
    """New calls do not go to this process; tell Drained when the last one has ended, which may be now."""

    process: int


class WriteShutdown(Struct, frozen=True):
    """Write `shutdown` and close the process's stdin."""

    process: int


class Signal(Struct, frozen=True):
    """Send the process's group SIGTERM, or SIGKILL."""

    process: int
    kill: bool


class Forget(Struct, frozen=True):
    """Nothing more is expected of this process."""

    process: int


class Show(Struct, frozen=True):
    """The state has changed, or why it is so; `reason` goes on from the extension's name.

    With a reason it may be the state of before: a reload has failed, and the old process goes on.
    """

    state: ExtensionState
    reason: str = ""


class ReloadsDone(Struct, frozen=True):
    """All reloads asked for so far are done; `error` goes on from the extension's name."""

    error: str | None = None


Action = Spawn | Greet | Serve | Withdraw | Fail | DrainProcess | WriteShutdown | Signal | Forget | Show | ReloadsDone
