"""Begins a run when a job has ended while its session is idle (`jobs.wake`)."""

import logging

from zotd.core.ports import StorageError
from zotd.sessions.session import Session
from zotd.wire.api import Started
from zotd.wire.errors import CommandError

SENDER = "job"
"""Who has sent the prompt, for people."""

PROMPT = "A job has ended, see above. Go on if that changes anything; else say so in a sentence."

log = logging.getLogger(__name__)


def may_wake(session: Session) -> bool:
    """Return whether a run may begin now without a person: nothing runs, waits or was aborted, and it is no subagent."""
    is_own = session.ledger.row.parent is None and not session.is_closed and not session.is_quieted
    return is_own and session.state == "idle"


async def wake(session: Session) -> None:
    """Begin the run, unless something else has begun meanwhile; it has told the model then."""
    if not session.ledger.transcript.job_news or not may_wake(session):
        return
    try:
        await session.prompt(PROMPT, (), sender=SENDER, when_busy="reject", accepted=_unheard)
    except (CommandError, StorageError) as error:
        log.warning("session %s was not woken by its job: %s", session.id, error)


def _unheard(_: Started) -> None:
    """No client waits for the answer."""
