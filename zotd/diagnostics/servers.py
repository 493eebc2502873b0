"""The language servers of a process: which one checks which file, for whom they run, and when they end."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path

from zotd.config.current import CurrentConfig
from zotd.config.language_servers import DiagnosticsSection
from zotd.core.edit_checks import EditingSession
from zotd.diagnostics.catalog import ServerRow, rows
from zotd.diagnostics.disk_view import text_of
from zotd.diagnostics.project_environment import find_program, has_in_package
from zotd.diagnostics.report import error_lines, late_lines, unchecked_lines
from zotd.diagnostics.server import CheckResult, FileEdit, LanguageServer, ServerFacilities, ServerSite, root_of
from zotd.process.memory import memory_of_sessions
from zotd.wire.diagnostics import LanguageServerInfo

LOOK_S = 1.0
"""Longest wait for the look at which programs are installed, unless `wait_s` is longer; local disks take a millisecond."""

UNSEEN = "[the language servers were not asked: the disk did not say within {look_s:g} s which are installed]"
"""What the model reads if that took longer; silence would mean that there are no errors."""


class LanguageServers:
    """All servers. Used on one event loop."""

    def __init__(self, facilities: ServerFacilities, config: CurrentConfig) -> None:
        """Start nothing yet."""
        self._facilities, self._config = facilities, config
        self._servers: dict[tuple[str, str], LanguageServer] = {}
        self._told: dict[str, Callable[[str], None]] = {}
        self._is_stopped = False

    async def new_errors(self, session: EditingSession, path: str, before: bytes | None, after: bytes) -> str:
        """Return what the model is told about a file that the session has changed, with its real path; empty: nothing.

        Takes at most `diagnostics.wait_s`, after a look at the disk that takes at most the longer one of that and `LOOK_S`.
        """
        section, suffix = self._config.value.diagnostics, Path(path).suffix
        text = text_of(after)
        chosen = [row for row in rows(section) if suffix in row.languages]
        if not chosen or text is None or not path.startswith(session.cwd.rstrip("/") + "/"):
            return ""
        old, look_s = None if before is None else text_of(before), max(LOOK_S, section.wait_s)
        try:
            async with asyncio.timeout(look_s):
                serving = await self._serving(session, path, chosen)
        except TimeoutError:
            return UNSEEN.format(look_s=look_s)
        checks = {
            server: server.submit(FileEdit(path, server.row.languages[suffix], old, text), section.wait_s)
            for server in serving
        }
        try:
            awaited = [check for server, check in checks.items() if not server.is_slow]
            if awaited:
                await asyncio.wait(awaited, timeout=section.wait_s)
            return _report(checks, section, session.cwd)
        finally:
            for check in checks.values():
                check.cancel()  # what is found from now on is told with the next edit

    async def leave(self, session_id: str) -> None:
        """The session leaves memory: end the servers that no other one uses."""
        self._told.pop(session_id, None)
        for key, server in list(self._servers.items()):
            server.sessions.discard(session_id)
            if not server.sessions:
                del self._servers[key]
                await server.stop()

    async def stop(self) -> None:
        """The process ends: end all servers, side by side."""
        self._is_stopped = True
        async with asyncio.TaskGroup() as tasks:
            for server in self._servers.values():
                tasks.create_task(server.stop(), name=f"stop of {server.row.name}")
        self._servers.clear()

    async def listing(self) -> list[LanguageServerInfo]:
        """Return the servers that sessions have used, those of one root together."""
        memory = await asyncio.to_thread(memory_of_sessions, [one.pid for one in self._servers.values() if one.pid])
        return [
            LanguageServerInfo(
                name=server.row.name,
                root=server.site.root,
                state=server.state.value,
                reason=server.reason,
                pid=server.pid,
                memory_bytes=None if server.pid is None else memory.get(server.pid),
                files=server.open_files,
                sessions=sorted(server.sessions),
            )
            for _, server in sorted(self._servers.items(), key=lambda item: item[0])
        ]

    # --- inside -------------------------------------------------------------------------------------------------

    async def _serving(self, session: EditingSession, path: str, chosen: Sequence[ServerRow]) -> list[LanguageServer]:
        """Return the servers of a file that are installed; started or not."""
        roots = await asyncio.to_thread(_roots, path, session, chosen)
        found = []
        for row, root in () if self._is_stopped else roots:
            server = self._servers.get((root, row.name))
            if server is None or server.row != row:
                server = self._add(row, root, session)
            server.sessions.add(session.id)
            found.append(server)
        self._told[session.id] = session.told
        return found

    def _add(self, row: ServerRow, root: str, session: EditingSession) -> LanguageServer:
        old = self._servers.get((root, row.name))
        site = ServerSite(root, session.cwd, session.env)
        server = LanguageServer(row, site, self._facilities, lambda sentence: self._tell(server, sentence))
        self._servers[root, row.name] = server
        if old is not None:  # the settings have changed
            server.sessions |= old.sessions
            self._facilities.spawn(f"stop of {row.name}", old.stop())
        return server

    def _tell(self, server: LanguageServer, sentence: str) -> None:
        for session in server.sessions:
            if (told := self._told.get(session)) is not None:
                told(sentence)


def _report(checks: Mapping[LanguageServer, asyncio.Future[CheckResult]], section: DiagnosticsSection, cwd: str) -> str:
    """Return what the model is told: new errors, then which servers have failed or were late."""
    late = [server.row.name for server, check in checks.items() if not check.done() and not server.is_slow]
    over = {
        server.row.name: check.result() for server, check in checks.items() if check.done() and not check.cancelled()
    }
    errors = list(chain.from_iterable(result.errors for result in over.values()))
    failed = {name: result.failure for name, result in over.items() if result.failure}
    return "\n".join([*error_lines(errors, cwd), *unchecked_lines(failed), *late_lines(late, section.wait_s)])


def installed(
    section: DiagnosticsSection, cwd: str | None, env: Mapping[str, str]
) -> list[tuple[ServerRow, str | None]]:
    """Return the known servers with the paths of their programs; None: it is not installed. Blocks."""
    return [(row, _program(row, [] if cwd is None else [Path(cwd)], env)) for row in rows(section)]


def _program(row: ServerRow, places: Sequence[Path], env: Mapping[str, str]) -> str | None:
    program = find_program(row.command[0], places, env)
    if program is None or row.npm_package is None or has_in_package(*row.npm_package, places, program):
        return program
    return None


def _roots(path: str, session: EditingSession, chosen: Sequence[ServerRow]) -> list[tuple[ServerRow, str]]:
    found = []
    for row in chosen:
        root = root_of(path, session.cwd, row.roots)
        places = list(dict.fromkeys((Path(root), Path(session.cwd))))
        if _program(row, places, session.env) is not None:
            found.append((row, os.path.realpath(root)))
    return found
