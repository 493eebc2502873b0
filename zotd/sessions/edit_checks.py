"""Has language servers check what sessions edit, in trusted workspaces. `zotd.diagnostics` is loaded with the first edit."""

from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path

from zotd.config.current import CurrentConfig
from zotd.core.edit_checks import CheckEdit, EditChecker, EditingSession
from zotd.exthost.jails import ExtensionJails
from zotd.process import OrphanReaper
from zotd.sessions.session import Session
from zotd.wire.diagnostics import LanguageServerInfo
from zotd.wire.events import Notice


class EditChecks:
    """The checks of all sessions."""

    def __init__(
        self,
        home: Path,
        config: CurrentConfig,
        *,
        spawn: Callable[[str, Coroutine[object, object, None]], None],
        jails: ExtensionJails | None,
        reaper: OrphanReaper,
    ) -> None:
        """`spawn` starts a named task, whose owner outlives the sessions; `jails`: None: nothing is checked."""
        self._home, self._config = home, config
        self._spawn, self._jails, self._reaper = spawn, jails, reaper
        self._checker: EditChecker | None = None
        self._is_stopped = False

    def of(self, session: Session, *, is_trusted: bool) -> CheckEdit | None:
        """Return what checks the edits of the session; None: nothing does."""
        # The settings and the interpreter of a project can make a language server run code of the project.
        if not is_trusted or self._jails is None or not self._config.value.diagnostics.enabled:
            return None
        jails = self._jails

        async def check(path: str, before: bytes | None, after: bytes) -> str:
            if self._is_stopped:
                return ""
            editing = EditingSession(
                session.id,
                session.ledger.row.cwd,
                session.environment.variables,
                lambda text: session.ledger.live([Notice("warn", text, session=session.ledger.label)]),
            )
            return await self._made(jails).new_errors(editing, path, before, after)

        return check

    def forget(self, session: Session) -> None:
        """The session leaves memory."""
        if self._checker is not None:
            self._spawn(f"language servers of {session.id}", self._checker.leave(session.id))

    async def stop(self) -> None:
        """End all servers."""
        self._is_stopped = True
        if self._checker is not None:
            await self._checker.stop()

    async def listing(self) -> Sequence[LanguageServerInfo]:
        """Return the servers that sessions in memory have used."""
        return () if self._checker is None else await self._checker.listing()

    def _made(self, jails: ExtensionJails) -> EditChecker:
        if self._checker is None:
            from zotd.diagnostics.server import ServerFacilities  # noqa: PLC0415  (few sessions edit what a server checks)
            from zotd.diagnostics.servers import LanguageServers  # noqa: PLC0415

            facilities = ServerFacilities(self._home, self._spawn, jails, self._reaper)
            self._checker = LanguageServers(facilities, self._config)
        return self._checker
