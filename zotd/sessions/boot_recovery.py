"""After a start: looks into the sessions that the daemon before was in the middle of (`docs/durability.md`).

They are repaired, and then wait for a person; with `resume = "auto"` they go on by themselves.
"""

import logging

from zotd.core.ports import StorageError
from zotd.sessions.manager import Manager
from zotd.sessions.session import Session
from zotd.store.families import sessions_with_jobs
from zotd.wire.api import Started
from zotd.wire.errors import CommandError

CUT = ("running", "waiting")
"""States of sessions that a daemon did not get to end."""

PAGE = 100

log = logging.getLogger(__name__)


async def recover(manager: Manager, *, resumes: bool) -> None:
    """Repair every session that was cut off; `resumes`: and go on with each, also with those cut off earlier."""
    for state in (*CUT, "held") if resumes else CUT:
        for key in await _sessions(manager, state):
            await _recover(manager, key, resumes=resumes)
    for key in [] if manager.journal is None else await sessions_with_jobs(manager.journal):
        await _recover(manager, key, resumes=False)
        if resumes:
            await _resume_tasks(manager, key)


async def _recover(manager: Manager, key: str, *, resumes: bool) -> None:
    try:
        session = await manager.get(key)
        await session.load()  # a client that attaches at the same time may be repairing it already
        if resumes and session.ledger.transcript.interrupted:
            await _go_on(session)
    except (CommandError, StorageError) as error:  # this one waits; the others go on
        log.warning("session %s was not recovered: %s", key, error)


async def _resume_tasks(manager: Manager, key: str) -> None:
    try:
        await manager.planner.offers.resume_tasks(await manager.get(key))
    except (CommandError, StorageError) as error:
        log.warning("the subagents of session %s were not resumed: %s", key, error)


async def _sessions(manager: Manager, state: str) -> list[str]:
    found: list[str] = []
    cursor: str | None = None
    while True:
        page, cursor = await manager.page(cwd=None, state=state, before=cursor, limit=PAGE, subagents=True)
        found += [info.id for info in page]
        if cursor is None:
            return found


async def _go_on(session: Session) -> None:
    log.info("session %s resumes where it was interrupted", session.id)
    await session.go_on(accepted=_unheard)


def _unheard(_: Started) -> None:
    """No client waits for the answer."""
