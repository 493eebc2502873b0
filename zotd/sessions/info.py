"""A session, and what its model sees, as clients are shown it."""

from collections.abc import Sequence

from zotd.core.ports import SessionRow
from zotd.sessions.session import Session
from zotd.wire.api import SessionInfo, Waiting
from zotd.wire.content import Message, visible
from zotd.wire.events import ApprovalRequested
from zotd.wire.jobs import RUNNING


def shown(messages: Sequence[Message]) -> list[Message]:
    """Messages with images as byte counts."""
    return [Message(message.role, visible(message.content), message.time) for message in messages]


def questions_of(session: Session) -> list[ApprovalRequested]:
    """What the session and its subagents ask people, oldest first of each."""
    return [*session.approvals.pending(), *session.children.asked.values()]


def describe(
    row: SessionRow,
    state: str,
    clients: int,
    *,
    ephemeral: bool = False,
    writing: int = 0,
    waiting: Waiting | None = None,
    fallback: str = "",
) -> SessionInfo:
    """A row of the journal's index as lists and snapshots show it."""
    settings = row.settings
    return SessionInfo(
        id=row.id,
        name=row.name,
        cwd=row.cwd,
        provider=settings.provider,
        model=settings.model,
        reasoning=settings.reasoning,
        mode=settings.mode,
        state=state,
        created=row.created,
        updated=row.updated,
        message_count=row.messages,
        clients=clients,
        ephemeral=ephemeral,
        failed=row.failed,
        usage=row.usage,
        writing=writing,
        waiting=waiting,
        fallback=fallback,
        parent=row.parent,
        family_usage=row.spent_below,
        jobs=sum(job.state == RUNNING for job in row.jobs),
        user=row.user,
    )
