"""Keeps a subagent from doing more than its parent may do, also when that changes while it works."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from msgspec.structs import replace

from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.permissions import narrowest
from zotd.core.ports import StorageError
from zotd.ledger.ledger import Ledger, Shown
from zotd.sessions.session import Session
from zotd.wire import events


@contextmanager
def keeping_narrow(child: Session, parent: Session) -> Iterator[None]:
    """Inside the block, the mode of `child` allows no more than that of `parent`. A wider mode of the parent does not widen it."""
    narrow = partial(_narrow, child.ledger, lambda: parent.ledger.row.settings.mode)
    narrow([events.SessionChanged(parent.state, mode=parent.ledger.row.settings.mode)])
    parent.ledger.observers.append(narrow)
    try:
        yield
    finally:
        parent.ledger.observers.remove(narrow)


def _narrow(child: Ledger, mode_above: Callable[[], str], shown: Sequence[events.Event]) -> None:
    if not any(isinstance(event, events.SessionChanged) and event.mode is not None for event in shown):
        return
    row, above = child.row, mode_above()
    mode = narrowest(row.settings.mode, above)
    # A mode to return to after planning must not be wider either.
    planning = row.settings.planning and narrowest(row.settings.planning, above)
    if (mode, planning) == (row.settings.mode, row.settings.planning):
        return
    settings = replace(row.settings, mode=mode, planning=planning)
    record = records.ConfigRecord(time=rfc3339(), settings=settings, name=row.name)
    with suppress(StorageError):  # then the subagent cannot record a call either, so none starts
        child.defer([Shown(record, [events.SessionChanged(row.state, mode=mode)])], settings=settings)
