"""Stores drafts so that they survive the end of the terminal (docs/decisions/0023-the-editor.md).

$ZOT_HOME/drafts/
    SESSION.OWNER.json   a draft; written at most once a second, replaced whole, removed as soon as there is none
    OWNER.lock           locked by the client that writes these, for as long as it lives

The lock tells whether a draft's owner lives: the kernel releases it however the client ends, and unlike a pid it cannot
be reused. A draft without a living owner goes to the first client that attaches to its session.
"""

import asyncio
import fcntl
import os
import re
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from zotd import private_file
from zotd.paths import UnsafePathError, check_private_dir, zot_home
from zotd.wire.base import BadFrameError, decode, encode
from zottui.editor.placeholders import EditorDraft
from zottui.ui_context import ClientEnvironment, NotePrinter, TaskSpawner

WRITE_S = 1.0
"""Seconds between two writes, which is what a kill may cost. A draft that was sent is removed at once."""

KEPT_S = 30 * 24 * 3600.0
"""Seconds after which an abandoned draft is deleted."""

MAX_BYTES = 4 * 1024 * 1024
"""Most bytes of a stored draft: it is written again each second while the user types. A screenshot fits."""

_NAME = re.compile(r"(?P<session>[\w-]+)\.(?P<owner>[\w-]+)\.json")


class DraftsContext(ClientEnvironment, NotePrinter, TaskSpawner, Protocol):
    """What `Drafts` needs of the application."""


class Drafts:
    """The drafts of one client."""

    def __init__(self, ui: DraftsContext) -> None:
        """Touch no file yet."""
        self._ui = ui
        self._folder = Path(zot_home(ui.env), "drafts")
        self._owner = f"{os.getpid()}-{os.urandom(4).hex()}"
        self._lock: int | None = None
        # Drafts to write, by session. The writing thread takes them with `popitem`, which is atomic.
        self._waiting: dict[str, EditorDraft] = {}
        # Sessions that may have a file of this client.
        self._stored: set[str] = set()
        # Held while files are written: at exit the event loop's thread writes too, while another thread may still do
        # so.
        self._writer = threading.Lock()
        self._is_writing = False
        self._is_closed = False
        self._sent = asyncio.Event()

    def keep(self, session: str, draft: EditorDraft) -> None:
        """Schedule a write of `draft` within a second; an empty draft removes the file at once."""
        # An empty draft matters only if there may be a file to delete: most sessions never have one.
        if self._is_closed or (not draft.text and session not in self._stored):
            return
        self._stored.add(session)
        self._waiting[session] = draft
        if not draft.text:
            self._sent.set()
        if not self._is_writing:
            self._is_writing = True
            self._ui.spawn(self._write())

    async def claim(self, session: str) -> EditorDraft | None:
        """Return this client's own draft of `session`, or else take over the newest one without a living owner.

        None if there is none, or if drafts cannot be stored here, which prints a warning once.
        """
        try:
            return await asyncio.to_thread(self._claim, session)
        except (OSError, UnsafePathError) as error:
            self._give_up(error)
            return None

    def close(self) -> None:
        """Write waiting drafts and release the lock, so that the next client can take them. Blocks for some milliseconds."""
        if self._is_closed:
            return
        self._is_closed = True
        with suppress(OSError, UnsafePathError):
            self._store()
        if self._lock is not None:
            os.close(self._lock)
            if not list(self._folder.glob(f"*.{self._owner}.json")):
                self._folder.joinpath(f"{self._owner}.lock").unlink(missing_ok=True)

    # --- writing ---------------------------------------------------------------------------------------------------

    async def _write(self) -> None:
        try:
            while self._waiting:
                self._sent.clear()
                await asyncio.to_thread(self._store)
                await self._pause()
        except (OSError, UnsafePathError) as error:
            self._give_up(error)
        finally:
            self._is_writing = False

    async def _pause(self) -> None:
        """Wait until the next write is due; a sent draft ends the wait, so that its file goes at once."""
        with suppress(TimeoutError):
            async with asyncio.timeout(WRITE_S):
                await self._sent.wait()

    def _give_up(self, error: OSError | UnsafePathError) -> None:
        if not self._is_closed:
            reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
            self._ui.say(f"drafts are not saved; cannot write to {self._folder}: {reason}", "warn")
        self._is_closed = True

    def _store(self) -> None:
        with self._writer:
            while self._waiting:
                session, draft = self._waiting.popitem()
                path = self._own(session)
                if draft.text:
                    self._prepare()
                    private_file.write(path, encode(fitting(draft)))
                else:
                    path.unlink(missing_ok=True)

    def _own(self, session: str) -> Path:
        return self._folder / f"{session}.{self._owner}.json"

    # --- claiming --------------------------------------------------------------------------------------------------

    def _claim(self, session: str) -> EditorDraft | None:
        with self._writer:
            self._prepare()
            mine = self._own(session)
            found = _read(mine)
            if found is not None or session in self._waiting:  # text typed meanwhile takes precedence over an orphan
                return found
            times = self._times()
            for name in orphans(times, session, self._living(times)):
                with suppress(FileNotFoundError):  # another client was faster; rename is atomic, so only one succeeds
                    self._folder.joinpath(name).rename(mine)
                    self._stored.add(session)
                    return _read(mine)
        return None

    def _prepare(self) -> None:
        """Create the folder and the lock, and delete expired files; only once."""
        if self._lock is not None:
            return
        check_private_dir(str(self._folder))
        lock = self._folder / f"{self._owner}.lock"
        # Lock under a hidden name, then rename: a visible file that is not locked yet looks like a dead client's.
        unborn = self._folder / f".{lock.name}"
        self._lock = os.open(unborn, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, private_file.MODE)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unborn.rename(lock)
        times = self._times()
        for name in expired(times, self._living(times), time.time()):
            self._folder.joinpath(name).unlink(missing_ok=True)

    def _times(self) -> dict[str, float]:
        """Return the modification time of each file."""
        found = {}
        for entry in os.scandir(self._folder):
            with suppress(FileNotFoundError):
                found[entry.name] = entry.stat(follow_symlinks=False).st_mtime
        return found

    def _living(self, names: Iterable[str]) -> set[str]:
        """Return the owners whose lock is held."""
        locks = (name.removesuffix(".lock") for name in names if name.endswith(".lock") and not name.startswith("."))
        return {owner for owner in locks if _is_locked(self._folder / f"{owner}.lock")}


def orphans(times: Mapping[str, float], session: str, living: set[str]) -> list[str]:
    """Return the drafts of `session` without a living owner, newest first."""
    found = [name for name in times if (parts := _NAME.fullmatch(name)) and parts["session"] == session]
    return sorted((name for name in found if _owner(name) not in living), key=lambda name: -times[name])


def expired(times: Mapping[str, float], living: set[str], now: float) -> list[str]:
    """Return the files to delete: drafts older than `KEPT_S`, leftovers of killed writers, locks without a draft."""
    old = {name for name, written in times.items() if now - written > KEPT_S and _owner(name) not in living}
    left = {_owner(name) for name in times.keys() - old if _NAME.fullmatch(name)}
    locks = {name for name in times if name.endswith(".lock") and not name.startswith(".")}
    return sorted(old | {name for name in locks if _owner(name) not in living | left})


def fitting(draft: EditorDraft) -> EditorDraft:
    """Return `draft` cut to `MAX_BYTES`: pastes and images that do not fit are dropped and marked as lost."""
    room = MAX_BYTES - len(draft.text.encode())
    pastes, images, text = {}, {}, draft.text
    for label, content in draft.pastes.items():
        room -= len(content.encode())
        if room >= 0:
            pastes[label] = content
        else:
            text, room = text.replace(label, _lost(label)), room + len(content.encode())
    for label, image in draft.images.items():
        room -= len(image.data)
        if room >= 0:
            images[label] = image
        else:
            text, room = text.replace(label, _lost(label)), room + len(image.data)
    return EditorDraft(text, pastes, images)


def _lost(label: str) -> str:
    return f"{label.removesuffix(']')} · lost]"


def _owner(name: str) -> str:
    """Return the owner in a file name."""
    parts = _NAME.fullmatch(name)
    return parts["owner"] if parts else name.removesuffix(".lock")


def _read(path: Path) -> EditorDraft | None:
    content = private_file.read(path)
    if content is None:
        return None
    try:
        return decode(content, EditorDraft)
    except BadFrameError:  # written by another version; the next write replaces it
        return None


def _is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two clients that check do not block each other
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
