"""Has the clients of a session see what its subagents ask, and decide it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from msgspec.structs import replace

from zotd.permissions.approvals import SessionApprovals
from zotd.permissions.preview import visible
from zotd.sessions.children import Decide
from zotd.sessions.session import Session
from zotd.wire import events

ASKS = "The subagent {name} asks:"

WITHDRAWN = "nothing waits for it any more"
"""Why a question of a subagent that no longer works is over for the clients of its parent."""

Above = Callable[[Session], Session | None]
"""Returns the session that waits for a subagent."""


class ClientsAbove:
    """The clients of the parent, as a follower of its subagent."""

    def __init__(self, approvals: SessionApprovals) -> None:
        """`approvals`: of the parent."""
        self._approvals = approvals

    @property
    def can_decide(self) -> bool:
        """Whether one of them answers questions about calls, and may."""
        return self._approvals.is_attended


@contextmanager
def bubbling(child: Session, parent: Session, above: Above) -> Iterator[None]:
    """Inside the block, the clients of `parent`, and of those above it, are shown what `child` asks."""
    followers = ClientsAbove(parent.approvals)
    child.approvals.followers.add(followers)
    observer = partial(_committed, child, above)
    child.ledger.observers.append(observer)
    for question in child.approvals.pending():
        _ask(child, above, question)
    for question in child.children.asked.values():  # it went on before its parent did
        _show(parent, above, question, child.decide)
    try:
        yield
    finally:
        child.ledger.observers.remove(observer)
        child.approvals.followers.discard(followers)
        for question in [*child.approvals.pending(), *child.children.asked.values()]:
            resolved = events.ApprovalResolved(question.approval, "cancelled", "once", "", WITHDRAWN)
            _settle(child, above, resolved)


def _committed(child: Session, above: Above, shown: Sequence[events.Event]) -> None:
    for event in shown:
        if isinstance(event, events.ApprovalRequested):
            _ask(child, above, event)
        elif isinstance(event, events.ApprovalResolved):
            _settle(child, above, event)


def _ask(child: Session, above: Above, question: events.ApprovalRequested) -> None:
    parent = above(child)
    if parent is not None:
        name = visible(child.ledger.row.name or child.id)
        preview = "\n\n".join(filter(None, (ASKS.format(name=name), question.preview)))
        _show(parent, above, replace(question, preview=preview, subagent=child.id), child.decide)


def _show(parent: Session | None, above: Above, question: events.ApprovalRequested, decide: Decide) -> None:
    while parent is not None:
        own = replace(question, session=parent.ledger.label, seq=None)
        parent.children.ask(own, decide)
        parent.ledger.live([own])
        parent = above(parent)


def _settle(child: Session, above: Above, resolved: events.ApprovalResolved) -> None:
    parent = above(child)
    while parent is not None:
        if parent.children.settle(resolved.approval):
            parent.ledger.live([replace(resolved, session=parent.ledger.label, seq=None)])
        parent = above(parent)
