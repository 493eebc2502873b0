"""States, inputs and actions of `core.supervision`.

Reasons continue a sentence after the extension's name: "exited with code 3", "sent no hello within 5 s".
"""

from enum import StrEnum

from msgspec import Struct


class ExtensionState(StrEnum):
    """State of an extension as shown to users."""

    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    """It crashed; the next start is scheduled."""
    PARKED = "parked"
    """It crashed too often; only a reload starts it again."""
    STOPPING = "stopping"


class Phase(StrEnum):
    """Phase in the life of a process."""

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

    `says_ready`: it announced that it will send `ready`, so silence before that has no meaning.
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
    """The connection to the process is unusable; `reason` continues a sentence after its name."""

    process: int
    reason: str


class Exited(Struct, frozen=True):
    """The process has ended, or could not be started; `reason` continues a sentence after its name."""

    process: int
    reason: str


class Drained(Struct, frozen=True):
    """The last call of a draining process has ended."""

    process: int


class Tick(Struct, frozen=True):
    """The time `Supervision.wake_at` is reached; deadlines are checked."""


FromProcess = Greeted | FrameReceived | Closed | Broke | Exited | Drained

Input = StartRequested | Stop | Reload | Tick | FromProcess

# --- actions --------------------------------------------------------------------------------------------------


class Spawn(Struct, frozen=True):
    """Start a process; answer Exited if that fails."""

    process: int


class Greet(Struct, frozen=True):
    """Send `hello_ack` to the process."""

    process: int


class Serve(Struct, frozen=True):
    """Offer what this process registers, and send new calls to it."""

    process: int


class Withdraw(Struct, frozen=True):
    """Offer nothing of this extension any more; no process serves."""

    reason: str


class Fail(Struct, frozen=True):
    """Fail the pending calls of the process with this reason."""

    process: int
    reason: str


class DrainProcess(Struct, frozen=True):
    """Send no new calls to this process; answer Drained when its last call has ended, which may be at once."""

    process: int


class WriteShutdown(Struct, frozen=True):
    """Write `shutdown` and close the process's stdin."""

    process: int


class Signal(Struct, frozen=True):
    """Send the process's group SIGTERM, or SIGKILL."""

    process: int
    kill: bool


class Forget(Struct, frozen=True):
    """Release the resources of this process; no further input from it is expected."""

    process: int


class Show(Struct, frozen=True):
    """The state or its reason has changed; `reason` continues a sentence after the extension's name.

    The state may be the same as before: after a failed reload the old process continues, and the reason says so.
    """

    state: ExtensionState
    reason: str = ""


class ReloadsDone(Struct, frozen=True):
    """All reloads requested so far are done; `error` continues a sentence after the extension's name."""

    error: str | None = None


Action = Spawn | Greet | Serve | Withdraw | Fail | DrainProcess | WriteShutdown | Signal | Forget | Show | ReloadsDone
