"""The MCP servers that clients bring into sessions, such as those of an editor, for as long as they are connected.

    session.mcp_servers -> a private file -> a host for the session -> one bridge for each server

Their entries go through files, as those of `mcp.json` do, because command lines are visible to all users. A file is named
by its content: a client that reconnects brings the same one, and its servers go on.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from zotd import private_file
from zotd.contributions import discovery
from zotd.contributions.discovery import ExtensionSources
from zotd.contributions.scope import ExtensionScope
from zotd.contributions.view import Extensions
from zotd.exthost.discovery import Discovered
from zotd.exthost.mcp import MAX_BYTES
from zotd.paths import make_private_dir
from zotd.sessions.session import Session
from zotd.wire.errors import Code, CommandError
from zotd.wire.mcp import McpServer, written

log = logging.getLogger(__name__)

FOLDER = "client-servers"
"""Directory in `ZOT_HOME` of the files."""

LEFT_S = 60.0
"""How long servers stay after their client: one that lost its connection finds them running."""

ENDED = "has ended, because the client that brought it is gone"


class ClientServers:
    """The servers that clients have brought, by session, and the hosts that run them."""

    def __init__(
        self,
        places: ExtensionSources,
        *,
        begin: Callable[[Session, Callable[[], Discovered]], ExtensionScope],
        end: Callable[[ExtensionScope], None],
        spawn: Callable[[str, Coroutine[object, object, None]], None],
    ) -> None:
        """`begin` starts a host with the extensions that its second argument finds, and `end` ends it."""
        self._places = places
        self._folder = places.home / FOLDER
        self._begin = begin
        self._end = end
        self._spawn = spawn
        self._files: dict[str, dict[str, Path]] = {}
        """By session: the file of each client, the newest last."""
        self._scopes: dict[str, ExtensionScope] = {}
        self._leaving: set[asyncio.TimerHandle] = set()

    @property
    def layers(self) -> list[ExtensionScope]:
        """The hosts."""
        return list(self._scopes.values())

    def clean(self) -> None:
        """Remove the files of a daemon that was killed."""
        with suppress(OSError):
            for file in self._folder.iterdir():
                file.unlink()

    async def bring(self, session: Session, client: str, servers: Mapping[str, McpServer]) -> None:
        """Run these servers for the session, instead of those that this client has brought before.

        Returns when they are being started. `left` has to be called when the client is gone.

        Raises:
            CommandError: they are more than 1 MiB, or cannot be stored.
        """
        content = written(servers)
        if len(content) > MAX_BYTES:
            raise CommandError(Code.TOO_LARGE, "the entries of MCP servers have at most 1 MiB together")
        files = self._files.setdefault(session.id, {})
        before = files.pop(client, None)
        if servers:
            # Noted first, so that nobody removes the file as one that is not used.
            file = files[client] = self._folder / f"{session.id}-{hashlib.sha256(content).hexdigest()[:16]}.json"
            try:
                await asyncio.to_thread(_write, file, content)
            except OSError as error:
                raise CommandError(Code.INTERNAL, f"{file} cannot be written: {error.strerror}") from error
        self._changed(session.id)
        if before is not None:
            self._remove_unused(session.id, before)
        if session.extensions is not None and session.id not in self._scopes:
            self.join(session, session.extensions)

    def left(self, session_id: str, client: str) -> None:
        """The client is gone: end its servers in a minute, unless another client has brought the same."""
        timer: asyncio.TimerHandle = asyncio.get_running_loop().call_later(
            LEFT_S, lambda: self._forget(timer, session_id, client)
        )
        self._leaving.add(timer)

    def knows(self, session_id: str, client: str) -> bool:
        """Whether this client has brought servers into this session, which were not taken back."""
        return client in self._files.get(session_id, {})

    def brings(self, session_id: str) -> bool:
        """Whether a client has brought servers into this session."""
        return bool(self._files.get(session_id))

    def join(self, session: Session, view: Extensions) -> None:
        """Have a session that came into memory, or one that gets its first server, use what clients have brought."""
        if not self.brings(session.id):
            return
        if session.id not in self._scopes:
            find = partial(self._find, session.id, Path(session.ledger.row.cwd))
            self._scopes[session.id] = self._begin(session, find)
        scope = self._scopes[session.id]
        view.resolution.bring(scope)
        scope.join(view)
        view.changed()

    def leave(self, session_id: str) -> None:
        """The session leaves memory: end its servers. They are there again when it returns before its clients are gone."""
        scope = self._scopes.pop(session_id, None)
        if scope is not None:
            self._end(scope)

    def close(self) -> None:
        """The process ends: remove its files."""
        for timer in self._leaving:
            timer.cancel()
        for session_id, files in list(self._files.items()):
            del self._files[session_id]
            for file in files.values():
                self._remove_unused(session_id, file)

    # --- inside -----------------------------------------------------------------------------------------------

    def _forget(self, timer: asyncio.TimerHandle, session_id: str, client: str) -> None:
        self._leaving.discard(timer)
        file = self._files.get(session_id, {}).pop(client, None)
        if file is not None:
            self._changed(session_id)
            self._remove_unused(session_id, file)

    def _changed(self, session_id: str) -> None:
        """Start and end servers as the files say now."""
        if not self.brings(session_id):
            self._files.pop(session_id, None)
        scope = self._scopes.get(session_id)
        if scope is None:
            return
        if self.brings(session_id):
            self._spawn(f"MCP servers of clients of {session_id}", scope.look_again())
            return
        gone = [one.name for one in scope.host.extensions]
        for view in list(scope.views.values()):
            for name in gone:
                view.ui_state.note(name, "info", ENDED)
            view.resolution.withdraw(scope)
            view.changed()
        del self._scopes[session_id]
        scope.views.clear()
        self._end(scope)

    def _find(self, session_id: str, cwd: Path) -> Discovered:
        # Of one name the newest counts: an editor that was closed and opened again may have other entries.
        files = list(self._files.get(session_id, {}).values())[::-1]
        return discovery.of_clients(self._places, cwd, dict.fromkeys(files))

    def _remove_unused(self, session_id: str, file: Path) -> None:
        if file in self._files.get(session_id, {}).values():
            return
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            log.warning("%s stays until the next start: %s", file, error.strerror)


def _write(file: Path, content: bytes) -> None:
    make_private_dir(str(file.parent))
    private_file.write(file, content)
