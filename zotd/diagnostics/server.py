"""One language server of a root, for all sessions there: started with the first edit, ended when it was not used for a while.

    stopped ──submit──> starting ──> ready ──IDLE_S, or the last session──> stopped
       └─────<── crash, hang, flood ──┴──> three times in ten minutes: off

Edits are checked one after the other, so an answer belongs to the edit that it is given for.
"""

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from zotd.diagnostics.catalog import ServerRow
from zotd.diagnostics.client import LanguageClient
from zotd.diagnostics.connection import ServerGoneError, ServerRefusedError, ServerSilentError
from zotd.diagnostics.disk_view import DiskView
from zotd.diagnostics.error_book import ErrorBook, FoundError, changed_lines
from zotd.diagnostics.messages import WatchedChange
from zotd.diagnostics.project_environment import find_program
from zotd.exthost.jails import ConfinedProgram, ConfinementError, ExtensionJails
from zotd.paths import make_private_dir
from zotd.process import OrphanReaper, start_service
from zotd.wire.sandbox import SandboxRequest, WorkspaceAccess

log = logging.getLogger(__name__)

IDLE_S = 600.0
"""How long a server runs without an edit."""

CHANGED = WatchedChange.CHANGED

CRASHES = 3
"""Number of crashes within `CRASHES_IN_S` after which a server stays off."""

CRASHES_IN_S = 600.0

MOST_WAITING = 64
"""Edits that may wait for a server. When there are more, the oldest one is not checked."""

LATE = 3
"""Number of late answers in a row after which edits do not wait for the server, until it is in time again."""

SLOW = "was late three times in a row, so edits do not wait for it; `diagnostics.wait_s` may be too short"

STOP_S = 2.5
"""Longest wait for the end of a server; its connection ends it in that time."""

DATA = "data/.language-servers"
"""Directory in `ZOT_HOME` with what servers keep for themselves."""


class ServerState(StrEnum):
    """What a server does."""

    STARTING = "starting"
    READY = "ready"
    STOPPED = "stopped"
    """It is started with the next edit."""
    OFF = "off"


class FileEdit(Struct, frozen=True):
    """A file that a session has changed."""

    path: str
    language: str
    before: str | None
    """None: there was no file, or no text."""
    after: str


class ServerFacilities(Struct, frozen=True):
    """What the daemon has for servers."""

    home: Path
    spawn: Callable[[str, Coroutine[object, object, None]], None]
    """Starts a named task, whose owner outlives the sessions."""
    jails: ExtensionJails
    reaper: OrphanReaper


class CheckResult(Struct, frozen=True):
    """What a server says about an edit; with neither, it has found nothing new, is off, or does not say."""

    errors: Sequence[FoundError] = ()
    """The new errors."""
    failure: str = ""
    """Why the edit was not checked, as a sentence without a full stop."""


class ServerSite(Struct, frozen=True):
    """Where a server works."""

    root: str
    cwd: str
    """Working directory of the sessions; the root is in it."""
    env: Mapping[str, str]
    """The user's environment."""

    @property
    def places(self) -> Sequence[Path]:
        """Directories that may have programs and an interpreter of their own, the nearest first."""
        return list(dict.fromkeys((Path(self.root), Path(self.cwd))))


class _Check(Struct, frozen=True, eq=False):
    edit: FileEdit
    future: asyncio.Future[CheckResult]
    patience_s: float
    asked_at: float


class LanguageServer:
    """One program for one root. Used on one event loop."""

    def __init__(
        self, row: ServerRow, site: ServerSite, facilities: ServerFacilities, told: Callable[[str], None]
    ) -> None:
        """Start nothing yet; `told` gets a sentence for people when the server is off."""
        self.row, self.site = row, site
        self.state = ServerState.STOPPED
        self.reason = ""
        """Why it is off or slow, or has ended last, as a clause that continues its name."""
        self.sessions: set[str] = set()
        """Who uses it; updated by the owner."""
        self._facilities, self._told = facilities, told
        self._book = ErrorBook()
        self._client: LanguageClient | None = None
        self._disk: DiskView | None = None
        self._unchecked: dict[str, str | None] = {}
        """Texts of files before edits that could not be checked, by path: the errors of those edits are new still."""
        self._queue: deque[_Check] = deque()
        self._arrived = asyncio.Event()
        self._rest = asyncio.Event()
        self._rest.set()
        self._is_busy = self._is_closed = False
        self._crashes: list[float] = []
        self._late = 0

    @property
    def is_slow(self) -> bool:
        """Whether it was late so often that nobody should wait for it."""
        return self._late >= LATE

    @property
    def pid(self) -> int | None:
        """Its process, as long as it runs."""
        return None if self._client is None else self._client.connection.pid

    @property
    def open_files(self) -> int:
        """How many files it has open."""
        return 0 if self._client is None else len(self._client.files.files)

    def submit(self, edit: FileEdit, patience_s: float) -> asyncio.Future[CheckResult]:
        """Have an edit checked.

        Cancel the result when nobody waits for it any more: its errors then come with the next edit. `patience_s`: how long
        somebody waits.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[CheckResult] = loop.create_future()
        if self._is_over:
            future.set_result(CheckResult())
            return future
        if len(self._queue) >= MOST_WAITING:
            self._queue.popleft().future.cancel()
        self._queue.append(_Check(edit, future, patience_s, loop.time()))
        self._arrived.set()
        if self._rest.is_set():
            self._rest.clear()
            self._facilities.spawn(f"language server {self.row.name} of {self.site.root}", self._work())
        return future

    async def stop(self) -> None:
        """End it, within `STOP_S`."""
        self._is_closed = True
        self._arrived.set()
        if self._is_busy and self._client is not None:
            self._client.connection.fail("was ended")
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await self.rests()

    async def rests(self) -> None:
        """Wait until it has ended and nothing waits for it."""
        await self._rest.wait()

    # --- inside -------------------------------------------------------------------------------------------------

    async def _work(self) -> None:
        try:
            while (check := await self._next()) is not None:
                self._is_busy = True
                await self._handle(check)
                self._is_busy = False
        finally:
            try:
                await self._end("")
            finally:
                for waiting in self._queue:
                    waiting.future.cancel()
                self._queue.clear()
                self._is_busy = False
                self._rest.set()

    async def _next(self) -> _Check | None:
        """Return the next edit; None: nobody has made one for a while, or the server has to end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(IDLE_S):
                while not self._queue and not self._is_over:
                    self._arrived.clear()
                    await self._arrived.wait()
        return self._queue.popleft() if self._queue and not self._is_over else None

    @property
    def _is_over(self) -> bool:
        return self._is_closed or self.state is ServerState.OFF

    async def _handle(self, check: _Check) -> None:
        result = CheckResult()
        edit = check.edit
        before = self._unchecked.setdefault(edit.path, edit.before)
        try:
            client = await self._running()
            await self._check(client, edit, before)
            del self._unchecked[edit.path]
            if not check.future.done():  # else nobody is told now, and the errors stay new
                result = CheckResult(self._book.take_news(edit.path, changed_lines(edit.before or "", edit.after)))
        except (ConfinementError, OSError, ValueError) as error:
            await self._turn_off(f"cannot be started: {error}")
        except ServerGoneError as error:
            result = CheckResult(failure=f"it {error}")
            await self._crashed(str(error))
        except ServerRefusedError as error:
            result = CheckResult(failure=str(error))
            log.info("language server %s: %s", self.row.name, error)
        except ServerSilentError as error:
            log.info("language server %s: %s", self.row.name, error)
        took_s = asyncio.get_running_loop().time() - check.asked_at
        self._late = self._late + 1 if took_s > check.patience_s else 0
        if self.state is ServerState.READY:
            self.reason = SLOW if self.is_slow else ""
        if not check.future.done():
            check.future.set_result(result)

    async def _check(self, client: LanguageClient, edit: FileEdit, before: str | None) -> None:
        await self._follow_disk(client, edit.path)
        if before is not None and not self._book.knows(edit.path):
            client.show(edit.path, edit.language, before)
            await client.find_errors(edit.path)
            self._book.settle(edit.path)
        client.show(edit.path, edit.language, edit.after)
        client.saved(edit.path)
        await client.find_errors(edit.path)
        await client.find_other_errors(edit.path)

    async def _follow_disk(self, client: LanguageClient, path: str) -> None:
        """Tell the server what has changed beside this file, which is shown to it as the edit has it."""
        assert self._disk is not None, "it is not running"
        files = {file.path: file for file in client.files.files if file.path != path}
        news = await asyncio.to_thread(self._disk.look, files)
        if news.settings is not None:
            client.configure(news.settings)
        # Not of open files, whose texts the server has: it would read them again, which takes pyright 0.25 s.
        known = {path, *files}
        client.disk_changed([event for event in news.events if event[0] not in known or event[1] is not CHANGED])
        for changed, text in news.texts.items():
            if text is None:
                client.close(changed)
            else:
                client.show(changed, files[changed].language, text)

    # --- the process --------------------------------------------------------------------------------------------

    async def _running(self) -> LanguageClient:
        if self._client is not None and not self._client.connection.gone.is_set():
            return self._client
        if self._client is not None:
            await self._crashed(self._client.connection.reason)  # between two edits
            if self.state is ServerState.OFF:
                raise ServerRefusedError(0, self.reason)
        self.state = ServerState.STARTING
        client = LanguageClient(self.row, self.site.root, self._book)
        site = self.site
        self._disk = await asyncio.to_thread(DiskView, self.row, site.root, site.places, site.env)
        await self._start(client)
        self._client = client
        news = await asyncio.to_thread(self._disk.look, ())
        try:
            await client.initialize(news.settings or {})
        except ServerRefusedError as error:
            client.connection.fail(f"has refused to begin: {error}")
            raise ServerGoneError(client.connection.reason) from error
        self.state = ServerState.READY
        return client

    async def _start(self, client: LanguageClient) -> None:
        """Start the process, confined.

        Raises:
            ConfinementError, OSError, ValueError: it was not started.
        """
        program = await asyncio.to_thread(find_program, self.row.command[0], self.site.places, self.site.env)
        if program is None:
            raise FileNotFoundError(f"there is no {self.row.command[0]} any more")
        data = str(self._facilities.home / DATA / self.row.name)
        await asyncio.to_thread(make_private_dir, data)
        access = WorkspaceAccess.WRITE if self.row.writes else WorkspaceAccess.READ
        confined = ConfinedProgram(
            name=f"language server {self.row.name}",
            sandbox=SandboxRequest(workspace=access),
            workspace=self.site.root,
            directory=self.site.root,
            data=data,
            env=self.site.env,
        )
        words = await self._facilities.jails.words(confined)
        if not words:
            # Commands in a jail can change the programs and settings of the project that it would run.
            raise ConfinementError("cannot be confined, because [sandbox] extensions is false in config.toml")
        claim = self._facilities.reaper.claim(f"language server {self.row.name}", self.sessions)
        argv = [*words, program, *self.row.command[1:]]
        service = start_service(argv, cwd=self.site.root, env=self.site.env, listener=client.connection, claim=claim)
        client.connection.begin(service)

    async def _end(self, reason: str) -> None:
        client, self._client = self._client, None
        if self.state is not ServerState.OFF:
            self.state, self.reason = ServerState.STOPPED, reason
        if client is not None:
            await client.leave()
        self._book.forget_all()

    async def _crashed(self, reason: str) -> None:
        if self._is_closed:
            return
        now = asyncio.get_running_loop().time()
        self._crashes = [when for when in self._crashes if now - when < CRASHES_IN_S] + [now]
        if len(self._crashes) >= CRASHES:
            await self._turn_off(f"{reason}; it has failed {CRASHES} times")
        else:
            log.info("language server %s of %s %s", self.row.name, self.site.root, reason)
            await self._end(reason)

    async def _turn_off(self, reason: str) -> None:
        self.state, self.reason = ServerState.OFF, reason
        self._told(
            f"edits in {self.site.root} are not checked by {self.row.name} any more: the language server {reason}"
            " (`zotctl diagnostics` lists the servers)"
        )
        await self._end(reason)


def root_of(path: str, cwd: str, marks: Sequence[str]) -> str:
    """Return the nearest directory above a file, in `cwd`, that has one of the files `marks`; else `cwd`. Blocks."""
    for folder in Path(path).parents:
        if any((folder / mark).exists() for mark in marks):
            return os.fspath(folder)
        if folder == Path(cwd):
            break
    return cwd
