"""Deletes old sessions and entries of the audit trail by themselves, as `[retention]` of the configuration says; by default nothing is deleted.

Looks a minute after the start and then every hour. What runs, waits, is held, has a timer or a client attached stays.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from datetime import UTC, datetime, timedelta

from zotd.config import RetentionSection
from zotd.core.ports import StorageError
from zotd.sessions.manager import Manager
from zotd.store.archive import Archive
from zotd.store.queries import PageQuery
from zotd.store.user_days import DAY_CHARS
from zotd.wire.api import SessionInfo
from zotd.wire.errors import CommandError

FIRST_S = 60.0
"""After the start: clients come back to their sessions first."""

EVERY_S = 3600.0

PAUSE_S = 0.05
"""Between two deletions, for the commits of others."""

PAGE = 100

DAYS_KEPT = 7
"""How long it is known what users have spent on a day. The quotas need that of today."""

IN_USE = frozenset({"running", "waiting", "held", "blocked"})
"""States of sessions that stay; one that is blocked may be all that is left of what was damaged."""

log = logging.getLogger(__name__)


class RetentionTask:
    """Carries out the rules that hold at the moment."""

    def __init__(
        self,
        manager: Manager,
        rules: Callable[[], RetentionSection],
        used_bytes: Callable[[], Awaitable[int]],
        kept: Callable[[], Awaitable[Collection[str]]],
        *,
        archive: Archive,
    ) -> None:
        """`used_bytes`: of the database, without pages that are free. `kept` finds sessions that stay."""
        self._archive = archive
        self._manager = manager
        self._rules = rules
        self._used_bytes = used_bytes
        self._kept = kept

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        await asyncio.sleep(FIRST_S)
        while True:
            try:
                await self.look()
            except StorageError as error:
                log.warning("old sessions cannot be deleted: %s", error)
            await asyncio.sleep(EVERY_S)

    async def look(self) -> int:
        """Delete what is too old, then the oldest sessions while the database is too large; how many were deleted.

        Raises:
            StorageError: the journal cannot be read or written.
        """
        rules = self._rules()
        await self._archive.user_days.forget(_before(DAYS_KEPT)[:DAY_CHARS])
        if rules.audit_days is not None:
            await self._archive.audit.forget(_before(rules.audit_days))
        if rules.max_age_days is None and rules.max_size_mb is None:
            return 0
        limit = "" if rules.max_age_days is None else _before(rules.max_age_days)
        deleted = 0
        for one in await self._oldest_first():
            is_old = one.updated < limit
            if not is_old and (rules.max_size_mb is None or await self._used_bytes() <= rules.max_size_mb * 1_000_000):
                break
            is_free = one.state not in IN_USE and not one.daemon
            if is_free and one.id not in await self._kept() and await self._delete(one):
                deleted += 1
                await asyncio.sleep(PAUSE_S)
        if deleted:
            log.info("%d old sessions were deleted, as [retention] says", deleted)
        return deleted

    async def _oldest_first(self) -> list[SessionInfo]:
        found: list[SessionInfo] = []
        cursor: str | None = None
        while True:
            page, cursor = await self._manager.page(PageQuery(before=cursor, limit=PAGE, subagents=False))
            found += [one for one in page if not one.ephemeral]
            if cursor is None:
                return found[::-1]

    async def _delete(self, one: SessionInfo) -> bool:
        try:
            session = await self._manager.get(one.id)
            if session.ledger.followers or session.holders or session.work.is_active or session.work.queue.items():
                return False
            await self._manager.delete(session)
        except CommandError as error:  # it went meanwhile, or cannot be read
            log.warning("the old session %s was not deleted: %s", one.id, error)
            return False
        return True


def _before(days: int) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%S")
