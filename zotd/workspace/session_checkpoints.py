"""The checkpoints of a session's directory, as its runs and its commands use them.

before each step that may change files  ->  "step"
at the end of a run with such a step    ->  "end"
undo, redo, rewind                      ->  restores

A failure is reported once, and the run goes on: no step waits for a checkpoint longer than `STEP_S`.
"""

import asyncio
import importlib
import logging
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from zotd.checkpoints.checkpoint import Occasion
from zotd.checkpoints.errors import CheckpointError, UnrecordableError
from zotd.checkpoints.outcome import Restored, RunChanges, WhenChanged
from zotd.config.current import CurrentConfig
from zotd.config.sections import CheckpointsSection

STEP_S = 30.0
"""Longest wait of a step for its checkpoint, in seconds. Only the first one of a large directory takes so long; it is then
made after the run."""

SLOW_S = 3.0
"""After this time a step says what it waits for, in seconds."""

END_S = 10.0
"""Longest wait of the end of a run for its checkpoint, in seconds."""

RESTORE_S = 300.0
"""Longest that a command waits for a restore, in seconds. One that takes longer is finished by the next use."""

TIDY_S = 600.0
"""Longest that files are recorded, or old checkpoints packed, after a run, in seconds."""

AFTERWARDS = Occasion(kind="present")
"""Of a checkpoint that no step could wait for."""

AT_ONCE = 2
"""Checkpoints that a daemon records or restores at the same time; they compete for the disk, and for threads."""

MOST_WATCHED = 16
"""Directories that a daemon watches at the same time. A user has 128 inotify descriptors, and other programs need some, too."""

MACHINERY = "zotd.checkpoints.checkpoints"
"""Records and restores. It is loaded when a session first needs it: 20 ms in a thread, and 1 MiB."""

TYPE_CHECKING = False  # as `typing` has it: these are loaded when a session first needs them, see `MACHINERY`
if TYPE_CHECKING:
    from zotd.checkpoints.baseline import Baseline
    from zotd.checkpoints.checkpoints import Checkpoints
    from zotd.workspace.workspace_sync import WorkspaceSync


class SyncFactory(Protocol):
    """Returns what copies the files of a session; see `workspace_sync.WorkspaceSync`."""

    def __call__(
        self,
        session: str,
        cwd: str,
        *,
        environment: Callable[[], Mapping[str, str]],
        told: Callable[[str], None],
        baseline: "Callable[[], Baseline | None]",
    ) -> "WorkspaceSync":
        """Return it; arguments as of its constructor."""
        ...


log = logging.getLogger(__name__)

Result = TypeVar("Result")


class SessionCheckpoints:
    """The checkpoints of one session. Used on one event loop; the work is done in threads."""

    def __init__(
        self,
        keeper: "CheckpointKeeper",
        session: str,
        cwd: str,
        *,
        environment: Callable[[], Mapping[str, str]],
        told: Callable[[str], None],
        sync: SyncFactory | None,
    ) -> None:
        """See `CheckpointKeeper.of`."""
        self._keeper = keeper
        self._session = session
        self._cwd = cwd
        self._environment = environment
        self._told = told
        self._recorded_run = ""
        """The run of which a step is recorded, and not its end."""
        self._gave_up = False
        """Further attempts would fail, too."""
        self._is_too_slow = False
        """Nothing is recorded until all files were recorded in the background once."""
        self._said_slow = False
        self._was_told = False
        self._is_closed = False
        self.sync = (
            None
            if sync is None
            else sync(session, cwd, environment=environment, told=told, baseline=self._present_baseline)
        )
        """Copies the files to other machines; None: they stay here."""

    def close(self) -> None:
        """Watch the directory no more for this session, which leaves memory."""
        self._is_closed = True
        self._keeper.baselines.leave(self._session, self._cwd)

    async def settle(self) -> None:
        """Have the last changes copied to other machines before the session leaves memory, if files go there."""
        if self.sync is not None:
            await self.sync.settle()

    def forget(self) -> None:
        """The session is deleted: remove its files from where other machines find them."""
        if self.sync is not None:
            self.sync.forget()

    async def before_step(self, run: str, seq: int, tools: Sequence[str]) -> None:
        """Record the files before a step of a run. Returns also if that fails.

        Args:
            run: id of the run.
            seq: of the session's last event.
            tools: names of the tools that may change something in this step.
        """
        occasion = Occasion(kind="step", session=self._session, run=run, seq=seq, tools=tuple(tools))
        if await self._record(occasion, STEP_S):
            self._recorded_run = run

    async def after_run(self, run: str, seq: int) -> None:
        """Record the files at the end of a run, if one of its steps is recorded. Returns also if that fails."""
        if self._recorded_run == run:
            self._recorded_run = ""
            await self._record(Occasion(kind="end", session=self._session, run=run, seq=seq), END_S)

    async def tidy(self) -> None:
        """Do after a run what takes long: record the files if a step could not wait for that; pack what was recorded.

        A failure is only logged.
        """
        settings = self._keeper.settings
        if self._gave_up or not settings.enabled:
            return
        try:
            if self._is_too_slow:
                await self._in_thread(lambda here: here.record(AFTERWARDS), TIDY_S)
                self._is_too_slow = self._was_told = False
                self._told("the files are recorded now; what the next runs change can be undone")
            await self._in_thread(lambda here: here.tidy(settings.keep), TIDY_S)
        except (CheckpointError, TimeoutError) as error:
            log.warning("checkpoints of %s: %s", self._cwd, str(error) or f"not done within {TIDY_S:g} s")

    async def undo(self, when_changed: WhenChanged) -> Restored:
        """Take back what the last run has changed; raises as `Checkpoints.undo` does."""
        return await self._restored(lambda here: here.undo(self._session, when_changed=when_changed))

    async def redo(self, when_changed: WhenChanged) -> Restored:
        """Make the changes again that the last undo has taken back; raises as `Checkpoints.redo` does."""
        return await self._restored(lambda here: here.redo(self._session, when_changed=when_changed))

    async def undo_after(self, seq: int, when_changed: WhenChanged) -> Sequence[Restored]:
        """Undo all runs that began after the event `seq`; raises as `Checkpoints.undo_after` does."""
        return await self._restored(lambda here: here.undo_after(self._session, seq, when_changed=when_changed))

    async def changes(self, after: int, until: int | None) -> RunChanges:
        """Return what a run has changed; see `Checkpoints.run_changes`. Raises CheckpointError."""
        return await self._restored(lambda here: here.run_changes(self._session, after, until))

    async def _record(self, occasion: Occasion, limit_s: float) -> bool:
        """Return whether it is recorded."""
        if self._gave_up or self._is_too_slow or not self._keeper.settings.enabled:
            return False
        patience = asyncio.get_running_loop().call_later(SLOW_S, self._say_slow, limit_s)
        try:
            await self._in_thread(lambda here: here.record(occasion, always=True), limit_s)
        except TimeoutError:
            self._is_too_slow = True
            self._tell(f"that takes longer than {limit_s:g} s here; it is done after this run, for the next ones")
        except UnrecordableError as error:
            self._gave_up = True
            self._tell(str(error))
        except CheckpointError as error:
            self._tell(str(error))
        except Exception:  # a fault of ours must not cost the run
            log.exception("a checkpoint of %s failed", self._session)
            self._tell("it failed inside zot; see the daemon's log")
        else:
            self._was_told = False
            return True
        finally:
            patience.cancel()
        return False

    def _say_slow(self, limit_s: float) -> None:
        if not self._said_slow:
            self._said_slow = True
            self._told(f"recording the files of {self._cwd} before they change, for at most {limit_s:g} s")

    async def _restored(self, work: "Callable[[Checkpoints], Result]") -> Result:
        try:
            return await self._in_thread(work, RESTORE_S)
        except TimeoutError as error:
            raise CheckpointError(
                f"the files were not restored within {RESTORE_S:g} s; the next checkpoint or restore finishes it"
            ) from error

    async def _in_thread(self, work: "Callable[[Checkpoints], Result]", limit_s: float) -> Result:
        if MACHINERY not in sys.modules:
            await asyncio.to_thread(importlib.import_module, MACHINERY)
        from zotd.checkpoints.checkpoints import Checkpoints  # noqa: PLC0415  (loaded in a thread)
        from zotd.checkpoints.judging import RecordingLimits  # noqa: PLC0415

        keeper, env, abandoned = self._keeper, self._environment(), threading.Event()
        baseline = self._present_baseline()
        limits = RecordingLimits(file_bytes=keeper.settings.max_file_mb * 1_000_000)

        def run() -> Result:
            here = Checkpoints(self._cwd, keeper.home, env, limits=limits, baseline=baseline, abandoned=abandoned)
            return work(here)

        try:
            async with asyncio.timeout(limit_s), keeper.turns:
                return await asyncio.to_thread(run)
        finally:
            abandoned.set()  # a thread cannot be cancelled; this ends its git

    def _present_baseline(self) -> "Baseline | None":
        """Return what is known of the directory; None if nothing is watched any more."""
        return None if self._is_closed else self._keeper.baselines.of(self._session, self._cwd)

    def _tell(self, reason: str) -> None:
        if not self._was_told:
            self._was_told = True
            self._told(f"the files are not recorded before this step, so it cannot be undone: {reason}")


class StepRecording:
    """Has the files recorded once for each step of a run, before the first of its calls that may change them."""

    def __init__(self, run: str, checkpoints: SessionCheckpoints | None, *, last_seq: Callable[[], int]) -> None:
        """`checkpoints`: None: nothing is recorded. `last_seq` returns that of the session's last event."""
        self._run = run
        self._checkpoints = checkpoints
        self._last_seq = last_seq
        self._is_due = False
        self._tools: Sequence[str] = ()
        self._under_way = asyncio.Lock()
        self._are_changed = False
        """By calls of the step, perhaps."""

    def begin_step(self, tools: Sequence[str]) -> None:
        """A step begins whose calls of these tools may change files."""
        self._is_due = bool(tools)
        self._tools = tools
        self._are_changed = False

    async def before_change(self) -> None:
        """Return when the files are recorded, or that has failed; at once if this is not the first call of the step."""
        if self._checkpoints is None:
            return
        async with self._under_way:
            if self._is_due:
                await self._checkpoints.before_step(self._run, self._last_seq(), self._tools)
                self._is_due = False  # behind it: if this call is cancelled, the next one records
            self._are_changed = True

    def end_call(self) -> None:
        """A call has ended: what it has changed is copied to other machines, if files go there."""
        if self._are_changed and self._checkpoints is not None and self._checkpoints.sync is not None:
            self._checkpoints.sync.changed()

    async def end(self) -> None:
        """Record what the run has made of the files, before clients hear of its end."""
        if self._checkpoints is not None:
            await self._checkpoints.after_run(self._run, self._last_seq())
            if self._checkpoints.sync is not None:
                self._checkpoints.sync.changed()


class Baselines:
    """The baselines of directories, for the sessions that use them. Belongs to one event loop."""

    def __init__(self) -> None:
        self._known: dict[str, Baseline] = {}
        """By directory, what was used last at the end."""
        self._sessions: dict[str, set[str]] = {}
        """By directory: the sessions that use it."""

    def of(self, session: str, cwd: str) -> "Baseline":
        """Return the baseline of a directory, which this session uses until `leave`."""
        from zotd.checkpoints.baseline import Baseline  # noqa: PLC0415  (see `MACHINERY`)

        self._sessions.setdefault(cwd, set()).add(session)
        found = self._known[cwd] = self._known.pop(cwd) if cwd in self._known else Baseline()
        if len(self._known) > MOST_WATCHED:
            self._close(next(iter(self._known)))
        return found

    def leave(self, session: str, cwd: str) -> None:
        """The session does not record any more; nothing is watched for a directory that no session uses."""
        sessions = self._sessions.get(cwd, set())
        sessions.discard(session)
        if not sessions:
            self._sessions.pop(cwd, None)
            self._close(cwd)

    def _close(self, cwd: str) -> None:
        gone = self._known.pop(cwd, None)
        if gone is not None:
            # Waits for a recording that is under way, and for the kernel; a program that ends waits for neither.
            threading.Thread(target=gone.close, name=f"end of the watch of {cwd}", daemon=True).start()


class CheckpointKeeper:
    """What the checkpoints of all sessions of a process have in common."""

    def __init__(self, home: str, config: CurrentConfig) -> None:
        """`home`: `$ZOT_HOME`; `config`: the configuration that holds now."""
        self.home = home
        self._config = config
        self.turns = asyncio.Semaphore(AT_ONCE)
        """Held while something is recorded or restored."""
        self.baselines = Baselines()
        self._sync: SyncFactory | None = None

    def connect(self, sync: SyncFactory) -> None:
        """Copy the files of all stored sessions to other machines from now on."""
        self._sync = sync

    @property
    def settings(self) -> CheckpointsSection:
        """`[checkpoints]` of the configuration, as it is now."""
        return self._config.value.checkpoints

    def of(
        self,
        session: str,
        cwd: str,
        *,
        environment: Callable[[], Mapping[str, str]],
        told: Callable[[str], None],
        is_stored: bool = True,
    ) -> SessionCheckpoints:
        """Return the checkpoints of a session.

        Args:
            session: its id.
            cwd: its working directory.
            environment: returns the environment of its user.
            told: shows its users a sentence.
            is_stored: another daemon could go on with it.
        """
        sync = self._sync if is_stored else None
        return SessionCheckpoints(self, session, cwd, environment=environment, told=told, sync=sync)
