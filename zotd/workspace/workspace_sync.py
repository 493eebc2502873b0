"""Has the files of one session copied to the shared repository while it works, and brought from there before it works.

    arrive -> the newest copy is here, and no other daemon may push    a step or a run ends -> changed -> copied and pushed

Only the newest state is pushed. A failure is told, and the next change or run tries again.
"""

import asyncio
import logging
import os
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from zotd.checkpoints.arrival import MissingWorkspace
from zotd.checkpoints.baseline import Baseline
from zotd.checkpoints.errors import CheckpointError
from zotd.checkpoints.folders import folder_of
from zotd.checkpoints.judging import RecordingLimits
from zotd.checkpoints.known_copies import KnownCopies
from zotd.checkpoints.outcome import Brought
from zotd.checkpoints.shadow import ShadowRepository, find_program
from zotd.checkpoints.shared_repository import LostCopyError, SharedRepository
from zotd.checkpoints.synced import SyncedCheckpoints

PUSH_S = 120.0
"""Longest that a push takes, in seconds."""

FLUSH_S = 60.0
"""Longest that a move or a drain waits for the files of a session, in seconds."""

SETTLE_S = 10.0
"""Longest that the end of a session waits for its files, in seconds: the daemon may be ending, too."""

ARRIVE_S = 300.0
"""Longest that a run waits for its files, in seconds."""

ATTEMPTS = 3
"""How often the newest copy is brought when another daemon pushes at the same time."""

log = logging.getLogger(__name__)

Result = TypeVar("Result")


class SyncSettings(Struct, frozen=True):
    """What all sessions of a daemon have in common."""

    url: str
    """Of the shared repository."""
    place: str
    home: str
    file_bytes: Callable[[], int]
    spawn: Callable[[str, Coroutine[object, object, None]], None]


class WorkspaceSync:
    """Belongs to one event loop; the work is done in threads."""

    def __init__(
        self,
        settings: SyncSettings,
        session: str,
        cwd: str,
        *,
        environment: Callable[[], Mapping[str, str]],
        told: Callable[[str], None],
        baseline: Callable[[], Baseline | None],
    ) -> None:
        """`environment` returns that of the session's user; `told` shows its users a sentence.

        `baseline` returns what is known of the directory.
        """
        self._settings = settings
        self._session = session
        self._cwd = cwd
        self._environment = environment
        self._told = told
        self._baseline = baseline
        self._expected = ""
        """The copy that is in the shared repository."""
        self.has_arrived = False
        """The files are here, and this daemon pushes them."""
        self._problem = ""
        """Why the last push failed."""
        self._untold = ""
        self._is_due = False
        self._is_pushing = False
        self._transfer = asyncio.Lock()
        """One transfer at a time: each says which copy it replaces."""
        self._handed_over = asyncio.Event()
        self._handed_over.set()

    def restored(self) -> None:
        """Another daemon may have had the session meanwhile: look again before the next run."""
        self.has_arrived = False

    def changed(self) -> None:
        """A call has ended that may have changed files: push them in the background. Returns at once."""
        self._is_due = True
        if self.has_arrived and not self._is_pushing:
            self._is_pushing = True
            self._settings.spawn(f"copy of the files of {self._session}", self._push_due())

    def tell_later(self, message: str) -> None:
        """Keep a message for the model until it can be told."""
        self._untold = message

    def take_untold(self) -> str:
        """Return the message that was kept for the model, once."""
        message, self._untold = self._untold, ""
        return message

    def retry(self) -> None:
        """Push again what could not be pushed, and say why that failed; nothing happens if nothing did."""
        if self._problem and self.has_arrived:
            self._say(self._problem)
            self.changed()

    async def arrive(self) -> Brought:
        """Have the files of the session here, before a run. Raises CheckpointError if that is not possible."""
        async with self._transfer:
            if self.has_arrived:
                return Brought()
            brought = await self._claimed(ATTEMPTS)
            self.has_arrived, self._problem = True, ""
            return brought

    async def flush(self) -> None:
        """Push the present files, unless newer ones are in the shared repository, and wait for that.

        Raises CheckpointError.
        """
        async with self._transfer:
            if self.has_arrived:
                await self._push(FLUSH_S)
            else:
                await self._within(FLUSH_S, self._left)

    @contextmanager
    def leaving(self) -> Iterator[None]:
        """Have `settle` wait for the end of the block, in which the session is handed over."""
        self._handed_over.clear()
        try:
            yield
        finally:
            self._handed_over.set()

    async def settle(self) -> None:
        """Push what has changed, before the session leaves memory. A failure is logged; at most `SETTLE_S`."""
        try:
            async with asyncio.timeout(SETTLE_S):
                await self._handed_over.wait()
                await self._push_last()
        except (CheckpointError, TimeoutError) as error:
            reason = str(error) or f"not done within {SETTLE_S:g} s"
            log.warning("the last changes of session %s are not copied: %s", self._session, reason)

    def forget(self) -> None:
        """Remove the files of the session, which is deleted, from the shared repository, in the background."""
        self.has_arrived = False
        self._settings.spawn(f"removal of the files of {self._session}", self._forgotten())

    # --- inside -----------------------------------------------------------------------------------------------

    async def _claimed(self, attempts: int) -> Brought:
        """Bring the newest copy, and push one of the state here, so that late pushes of others are refused."""
        self._expected, brought = await self._within(ARRIVE_S, self._arrived)
        if self._expected and not brought.is_own:
            try:
                self._expected, _ = await self._within(PUSH_S, self._pushed)
            except LostCopyError:
                if attempts <= 1:
                    raise
                again = await self._claimed(attempts - 1)
                return again if again.place else brought
        return brought

    async def _push_due(self) -> None:
        try:
            while self._is_due and self.has_arrived:
                async with self._transfer:
                    await self._push(PUSH_S)
        except CheckpointError as error:
            log.warning("the files of session %s are not copied: %s", self._session, error)
        finally:
            self._is_pushing = False

    async def _push_last(self) -> None:
        async with self._transfer:
            if self._is_due and self.has_arrived:
                await self._push(PUSH_S)

    async def _push(self, limit_s: float) -> None:
        """Push the present state under the lock, and tell of a failure that was not told yet."""
        self._is_due = False
        try:
            self._expected, problem = await self._within(limit_s, self._pushed)
        except BaseException as error:
            self._is_due = True
            if isinstance(error, LostCopyError):
                self.has_arrived = False  # look again before the next run
            if isinstance(error, CheckpointError):
                self._say_new(str(error))
            raise
        if problem:
            self._say_new(f"the git history cannot be stored: {problem}")
        elif self._problem:
            self._problem = ""
            self._told("the files of the session are stored in the shared repository again")

    def _say_new(self, problem: str) -> None:
        if not self._problem:
            self._say(problem)
        self._problem = problem

    def _say(self, problem: str) -> None:
        self._told(
            f"the files of the session are not stored in {self._settings.url}: {problem}; until a later step or run can "
            "store them, what has changed is only here, and another daemon would go on with older files"
        )

    async def _forgotten(self) -> None:
        async with self._transfer:
            try:
                await self._within(FLUSH_S, self._removed)
            except CheckpointError as error:
                log.warning("files of the deleted session %s stay in the shared repository: %s", self._session, error)

    async def _within(self, limit_s: float, work: Callable[[threading.Event, Baseline | None], Result]) -> Result:
        abandoned = threading.Event()
        try:
            async with asyncio.timeout(limit_s):
                return await asyncio.to_thread(work, abandoned, self._baseline())
        except TimeoutError as error:
            raise CheckpointError(f"the shared repository did not answer within {limit_s:g} s") from error
        finally:
            abandoned.set()  # a thread cannot be cancelled; this ends its git

    # --- in threads -------------------------------------------------------------------------------------------

    def _arrived(self, abandoned: threading.Event, baseline: Baseline | None) -> tuple[str, Brought]:
        """Return the copy that is in the shared repository, and what was brought of it."""
        if self._is_there():
            here = self._here(abandoned, baseline)
            shared = self._shared(here)
            found = shared.newest(self._session)
            return found, here.bring(found, self._session, self._settings.place, shared) if found else Brought()
        env = self._environment()
        missing = MissingWorkspace(self._cwd, self._settings.home, env, self._session, abandoned=abandoned)
        try:
            shared = self._shared(missing)
            found = shared.newest(self._session)
            if found:
                return found, missing.appear(found, self._session, shared)
        finally:
            missing.discard()
        if not Path(self._cwd).is_dir():
            raise CheckpointError(
                f"{self._cwd} does not exist here, and {self._settings.url} has no files of the session; move the session "
                "to a daemon that has them, or make the directory"
            )
        return "", Brought()

    def _pushed(self, abandoned: threading.Event, baseline: Baseline | None) -> tuple[str, str]:
        """Push the present state; return its copy, and why the git history could not be pushed with it."""
        here = self._here(abandoned, baseline)
        return self._push_from(here, self._expected)

    def _left(self, abandoned: threading.Event, baseline: Baseline | None) -> None:
        """Push the state of a session that has not run here since it was loaded, if its files are here."""
        if not Path(self._cwd).is_dir():
            return
        here = self._here(abandoned, baseline)
        shared = self._shared(here)
        found = shared.newest(self._session)
        if not found or here.has_had(self._session, found, self._settings.place, shared):
            self._push_from(here, found)

    def _push_from(self, here: SyncedCheckpoints, expected: str) -> tuple[str, str]:
        made = here.copied(self._session, self._settings.place, expected)
        if made.commit == expected:
            return expected, ""
        head, shared = made.head, self._shared(here)
        problem = shared.push(self._session, made.commit, expected, head=head.commit, objects=head.objects)
        return made.commit, problem

    def _removed(self, abandoned: threading.Event, baseline: Baseline | None) -> None:
        del baseline
        env = self._environment()
        with tempfile.TemporaryDirectory() as folder:  # the directory of the session may be gone
            repository = ShadowRepository(f"{folder}/git", folder, find_program(env), abandoned)
            repository.create()
            SharedRepository(self._settings.url, repository, env).remove(self._session)

    def _is_there(self) -> bool:
        """Return whether the directory is there, and has files or had some of a session."""
        if not Path(self._cwd).is_dir():
            return False
        if any(Path(self._cwd).iterdir()):
            return True
        env = self._environment()
        folder = folder_of(self._settings.home, os.path.realpath(self._cwd))
        shadow = ShadowRepository(folder, self._cwd, find_program(env), threading.Event())
        return not KnownCopies(shadow).is_empty

    def _here(self, abandoned: threading.Event, baseline: Baseline | None) -> SyncedCheckpoints:
        settings = self._settings
        return SyncedCheckpoints(
            self._cwd,
            settings.home,
            self._environment(),
            limits=RecordingLimits(file_bytes=settings.file_bytes()),
            baseline=baseline,
            abandoned=abandoned,
        )

    def _shared(self, here: SyncedCheckpoints) -> SharedRepository:
        return SharedRepository(self._settings.url, here.repository, self._environment())
