"""Events about sessions that begin, change, move or end."""

from zotd.sessions.session import Session
from zotd.wire import events


def added(session: Session) -> events.Event:
    """It is there now."""
    row = session.ledger.row
    return events.SessionAdded(row.name, row.cwd, session.state, _parent(session), session=row.id)


def updated(session: Session) -> events.Event:
    """Its name or state has changed."""
    row = session.ledger.row
    return events.SessionUpdated(row.name, row.cwd, session.state, row.failed, _parent(session), session=row.id)


def removed(session: Session) -> events.Event:
    """It is gone."""
    return events.SessionRemoved(session=session.id)


def moved(session: Session, reason: str) -> events.Event:
    """Another daemon has it: clients that follow it here are disconnected, and attach again where it is."""
    ledger = session.ledger
    return events.Evicted(reason, ledger.shown_seq, session=ledger.label)


def _parent(session: Session) -> str | None:
    parent = session.ledger.row.parent
    return None if parent is None else parent.session
