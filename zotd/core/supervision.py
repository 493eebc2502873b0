r"""Supervision of one extension, as a state machine without I/O and without a clock.

    stopped -> starting -> ready -> (crash) restarting -> starting ...     five crashes in three minutes -> parked
                  \__________\__________________\________ stop -> stopping -> stopped

It manages processes, each with a number that is never reused:

    greeting -> settling -> ready -> draining -> leaving -> terminated -> killed
     (hello)     (ready)             (reload)   (shutdown)   (SIGTERM)   (SIGKILL)

`receive(input, now, random)` returns the actions for the caller, in order; at `wake_at` it expects a `Tick`. Inputs
from forgotten processes, early ticks and repeated frames are ignored.

Source: `docs/extensions.md`.
"""

from msgspec import Struct

from zotd.core import life
from zotd.core.life import ENDING, ExtensionState, Phase

HELLO_S = 5.0
"""Time limit from the spawn to `hello`; Node with a cold disk cache needs two seconds."""

QUIET_S = 0.25
"""Silence after which an extension that never says `ready` counts as ready, as in the original."""

READY_S = 10.0
"""Time from the spawn after which an extension that never says `ready` and is never silent counts as ready."""

LATE = f"did not say `ready` within {READY_S:g} s of its start"
"""Reason shown for an extension that announced `ready` and did not send it; continues a sentence after its name."""

LEAVE_S = 2.0
"""Time from `shutdown` to SIGTERM, for the process to save its state."""

TERM_S = 1.0
"""Time from SIGTERM to SIGKILL, for extensions that ignore `shutdown` but handle signals."""

KILL_S = 0.3
"""Time from SIGKILL to giving up; only a process that hangs in the kernel survives it. A stop takes at most 3.3 s."""

EXIT_S = 0.05
"""Time from the end of a pipe to the exit that usually follows, whose code is a better reason than the closed pipe."""

DRAIN_S = 30.0
"""Time that a replaced process has to finish its calls."""

BACKOFF_S = 0.5
"""Pause after the first crash; it doubles with each further one."""

BACKOFF_CAP_S = 30.0

JITTER = 0.2
"""Fraction by which each pause varies at random, so that extensions that crashed together do not restart together."""

CRASHES = 5
"""Number of crashes within `CRASHES_IN_S` after which the extension is parked."""

CRASHES_IN_S = 180.0

STABLE_S = 10.0
"""A process that ran for this time resets the crash count."""


class _Process(Struct):
    started: float
    deadline: float | None
    phase: Phase = Phase.GREETING
    is_dismissed: bool = False
    """It was asked to end, so its exit is no crash."""
    cause: str | None = None
    """The fault for which it was killed; a better reason for users than the exit by a signal."""
    pipe: str = ""
    """The pipe it closed, for phase CLOSED."""
    owes_ready: bool = False
    """It announced `ready` and has not sent it yet, so silence means that it is still starting."""


class Supervision:
    """State machine of one extension; begins in the state `stopped`."""

    def __init__(self) -> None:
        self._state = ExtensionState.STOPPED
        self._reason = ""
        self._processes: dict[int, _Process] = {}
        self._newest = 0
        self._current: int | None = None
        """The process that serves or will serve; in a reload with `replace` the one that has to end first."""
        self._next: int | None = None
        """The process that a reload has started while the current one still serves."""
        self._serving: int | None = None
        self._is_offering = False
        """Whether the extension's tools and commands are offered; during a `replace` also while no process serves."""
        self._is_replacing = False
        self._is_reloading = False
        self._crashes: list[float] = []
        self._restart_at: float | None = None
        self._now = 0.0
        self._random = 0.5
        self._actions: list[life.Action] = []

    @property
    def state(self) -> ExtensionState:
        """State as shown to users."""
        return self._state

    @property
    def wake_at(self) -> float | None:
        """Time at which a `Tick` is due; None if there is no deadline."""
        deadlines = [one.deadline for one in self._processes.values() if one.deadline is not None]
        if self._restart_at is not None:
            deadlines.append(self._restart_at)
        return min(deadlines, default=None)

    def awaits_ready(self, process: int) -> bool:
        """Whether the caller has to report frames of this process (`FrameReceived`); once it is ready they have no effect."""
        found = self._processes.get(process)
        return found is not None and (found.phase in {Phase.GREETING, Phase.SETTLING} or found.owes_ready)

    def receive(self, event: life.Input, *, now: float, random: float) -> list[life.Action]:
        """Return the actions that follow from `event`, in order; `now` is monotonic time in s, `random` is in [0, 1)."""
        self._now, self._random = now, random
        self._actions = []
        match event:
            case life.StartRequested():
                self._start()
            case life.Stop():
                self._stop()
            case life.Reload(replace):
                self._reload(replace=replace)
            case life.Tick():
                self._tick()
            case (
                life.Greeted(key)
                | life.FrameReceived(key)
                | life.Closed(key)
                | life.Broke(key)
                | life.Exited(key)
                | life.Drained(key)
            ):
                process = self._processes.get(key)
                if process is not None:
                    self._from_process(key, process, event)
        return self._actions

    # --- requests ---------------------------------------------------------------------------------------------

    def _start(self) -> None:
        if self._state in {ExtensionState.STOPPED, ExtensionState.PARKED}:
            self._crashes.clear()  # an explicit start gets all attempts again
            self._begin()

    def _stop(self) -> None:
        if self._state in {ExtensionState.STOPPED, ExtensionState.STOPPING}:
            return
        self._restart_at = None
        self._is_replacing = False
        self._current = self._next = None  # their exits are no crashes any more
        self._withdraw("was stopped")
        self._end_reload("was stopped")
        self._show(ExtensionState.STOPPING)
        for key in list(self._processes):
            self._dismiss(key, "was stopped")
        self._settle_stop()

    def _reload(self, *, replace: bool) -> None:
        if self._state is ExtensionState.STOPPING:
            self._do(life.ReloadsDone("is being stopped"))
            return
        self._is_reloading = True
        self._crashes.clear()  # the crashes of the old code say nothing about the new one
        if self._next is not None:
            self._dismiss(self._next, "was replaced")
            self._next = None
        if self._is_replacing:
            return  # the next process has not been started yet, so it will already run the new code
        if self._current is None:
            self._begin()
        elif self._serving is None:  # still starting: nothing to keep alive
            self._dismiss(self._current, "was replaced")
            self._begin()
        elif replace:
            self._is_replacing = True
            self._drain(self._current)
            self._show(ExtensionState.STARTING)
        else:
            self._next = self._spawn()

    # --- inputs from processes --------------------------------------------------------------------------------

    def _from_process(self, key: int, process: _Process, event: life.FromProcess) -> None:
        match event:
            case life.Exited(_, reason):
                self._gone(key, process, process.cause or reason)
            case _ if process.phase in ENDING:
                return
            case life.Greeted():
                self._greeted(key, process, event)
            case life.FrameReceived(_, kind):
                self._heard(key, process, kind)
            case life.Closed(_, pipe):
                if process.phase is not Phase.CLOSED:
                    process.phase, process.deadline = Phase.CLOSED, self._now + EXIT_S
                    process.pipe = pipe
            case life.Broke(_, reason):
                self._break(key, process, reason)
            case life.Drained():
                if process.phase is Phase.DRAINING:
                    self._leave(key, process)

    def _greeted(self, key: int, process: _Process, hello: life.Greeted) -> None:
        if process.phase is not Phase.GREETING:
            self._heard(key, process, "hello")
            return
        if not hello.name:
            self._break(key, process, "sent a hello without a name")
            return
        process.owes_ready, process.phase = hello.says_ready, Phase.SETTLING
        process.deadline = self._settled_at(process)
        self._do(life.Greet(key))
        # Already now, because registrations follow; a process started by a reload waits: the old one still serves.
        if key == self._current:
            self._serve(key)

    def _heard(self, key: int, process: _Process, kind: str) -> None:
        if process.phase is Phase.GREETING:
            self._break(key, process, f"began with `{kind}` instead of `hello`")
        elif process.phase is Phase.SETTLING and kind == "ready":
            process.owes_ready = False
            self._ready(key, process)
        elif process.phase is Phase.READY and process.owes_ready and kind == "ready":
            process.owes_ready = False
            self._show(ExtensionState.READY)  # removes the reason `LATE`
        elif process.phase is Phase.SETTLING:
            process.deadline = self._settled_at(process)

    def _settled_at(self, process: _Process) -> float:
        """Return the time at which the process counts as ready if it sends nothing more."""
        latest = process.started + READY_S
        return latest if process.owes_ready else min(self._now + QUIET_S, latest)

    def _ready(self, key: int, process: _Process) -> None:
        process.phase, process.deadline = Phase.READY, None
        old = self._current
        if key == self._next:
            self._current, self._next = key, None
            self._serve(key)
            if old is not None:
                self._drain(old)
        self._show(ExtensionState.READY, LATE if process.owes_ready else "")
        self._end_reload(None)

    def _break(self, key: int, process: _Process, reason: str) -> None:
        """Kill a process that violates the protocol; it has forfeited an orderly shutdown."""
        process.cause = reason
        if key == self._serving:
            self._withdraw(reason)
        self._do(life.Fail(key, reason))
        self._kill(key, process)

    def _gone(self, key: int, process: _Process, reason: str) -> None:
        del self._processes[key]
        if key == self._serving:
            self._withdraw(reason)
        self._do(life.Fail(key, reason))
        self._do(life.Forget(key))
        if key == self._current and self._is_replacing:
            self._is_replacing = False
            self._current = self._spawn()
        elif process.is_dismissed:  # it was asked to end, so this is no crash
            self._settle_stop()
        elif key == self._next:
            self._next = None
            if self._serving is not None:
                self._show(self._state, f"was not reloaded and continues as before: the new process {reason}")
            self._end_reload(reason)
        elif key == self._current:
            self._crashed(process, reason)

    def _crashed(self, process: _Process, reason: str) -> None:
        self._current = None
        if self._next is not None:
            self._promote(self._next)  # the reload is in progress already, so no restart is needed
            return
        self._withdraw(reason)  # after a failed `replace` the old registrations are still offered
        self._end_reload(reason)
        if self._now - process.started >= STABLE_S:
            self._crashes.clear()
        self._crashes = [when for when in self._crashes if self._now - when < CRASHES_IN_S] + [self._now]
        if len(self._crashes) >= CRASHES:
            self._show(ExtensionState.PARKED, f"{reason}; it crashed {CRASHES} times in a row and is not restarted")
            return
        planned = min(BACKOFF_CAP_S, BACKOFF_S * 2.0 ** (len(self._crashes) - 1))
        self._restart_at = self._now + planned * (1 + JITTER * (2 * self._random - 1))
        self._show(ExtensionState.RESTARTING, reason)

    def _promote(self, key: int) -> None:
        """Make the process started by a reload the current one, because the old one has crashed."""
        self._current, self._next = key, None
        self._show(ExtensionState.STARTING)
        if self._processes[key].phase is Phase.SETTLING:
            self._serve(key)

    # --- time -------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        for key, process in list(self._processes.items()):  # a copy: `_gone` removes processes
            if process.deadline is not None and process.deadline <= self._now:
                self._overdue(key, process)
        if self._restart_at is not None and self._restart_at <= self._now:
            self._begin()

    def _overdue(self, key: int, process: _Process) -> None:
        match process.phase:
            case Phase.GREETING:
                self._break(key, process, f"sent no hello within {HELLO_S:g} s")
            case Phase.SETTLING | Phase.READY:
                self._ready(key, process)
            case Phase.CLOSED:
                self._break(key, process, f"closed its {process.pipe} without exiting")
            case Phase.DRAINING:
                self._do(life.Fail(key, f"was replaced and did not answer within {DRAIN_S:g} s"))
                self._leave(key, process)
            case Phase.LEAVING:
                process.phase, process.deadline = Phase.TERMINATED, self._now + TERM_S
                self._do(life.Signal(key, kill=False))
            case Phase.TERMINATED:
                self._kill(key, process)
            case Phase.KILLED:
                self._gone(key, process, process.cause or "could not be killed")  # do not block a restart for ever

    # --- steps ------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._restart_at = None
        self._show(ExtensionState.STARTING)
        self._current = self._spawn()

    def _spawn(self) -> int:
        self._newest += 1
        self._processes[self._newest] = _Process(self._now, self._now + HELLO_S)
        self._do(life.Spawn(self._newest))
        return self._newest

    def _serve(self, key: int) -> None:
        self._serving, self._is_offering = key, True
        self._do(life.Serve(key))

    def _withdraw(self, reason: str) -> None:
        self._serving = None
        if self._is_offering:
            self._is_offering = False
            self._do(life.Withdraw(reason))

    def _drain(self, key: int) -> None:
        process = self._processes[key]
        if self._serving == key:
            self._serving = None  # what it offers stays: another process takes over
        process.is_dismissed = True
        if process.phase in ENDING:
            return  # it broke just before
        process.phase, process.deadline = Phase.DRAINING, self._now + DRAIN_S
        self._do(life.DrainProcess(key))

    def _dismiss(self, key: int, reason: str) -> None:
        """Stop a process and fail its calls, whatever its phase."""
        process = self._processes[key]
        process.is_dismissed = True
        if process.phase not in ENDING:
            self._do(life.Fail(key, reason))
            self._leave(key, process)

    def _leave(self, key: int, process: _Process) -> None:
        process.phase, process.deadline = Phase.LEAVING, self._now + LEAVE_S
        self._do(life.WriteShutdown(key))

    def _kill(self, key: int, process: _Process) -> None:
        process.phase, process.deadline = Phase.KILLED, self._now + KILL_S
        self._do(life.Signal(key, kill=True))

    def _settle_stop(self) -> None:
        if self._state is ExtensionState.STOPPING and not self._processes:
            self._show(ExtensionState.STOPPED)

    def _end_reload(self, error: str | None) -> None:
        if self._is_reloading:
            self._is_reloading = False
            self._do(life.ReloadsDone(error))

    def _show(self, state: ExtensionState, reason: str = "") -> None:
        if (state, reason) != (self._state, self._reason) or reason:  # the same failure twice is shown twice
            self._state, self._reason = state, reason
            self._do(life.Show(state, reason))

    def _do(self, action: life.Action) -> None:
        self._actions.append(action)
