"""Keeps the timers with which models want to be woken (`docs/timers.md`)."""

from zotd.clock import rfc3339
from zotd.core.due_times import IntervalRule
from zotd.core.timers import Timer
from zotd.core.wakes import MAX_CHAIN, MAX_PENDING, WakeError, WakeOrder, chained, prompt_of
from zotd.sessions.session import Session
from zotd.sessions.timers import Timers
from zotd.wire.errors import CommandError

TOO_MANY = "you are to be woken {count} times already; wait for these"

CHAINED = "you have woken yourself {count} times without a word of the user: say what is left, and end your turn"


async def wake_later(timers: Timers, session: Session, order: WakeOrder, call: str) -> str:
    """Have the model of this session woken, as its call wants; returns what it is told.

    Raises WakeError if it is not woken, StorageError if nothing can be stored. A call that is repeated after a crash finds its timer.
    """
    key = f"t_{call.partition('_')[2]}"
    pending = [timer for timer in timers.listed(session.id) if timer.origin == "wake"]
    found = next((timer for timer in pending if timer.id == key), None)
    if found is None:
        _check(session, len(pending))
        found = await _added(timers, session, order, key)
    return f"you are woken at {rfc3339(found.due)[:19]}Z, unless the user removes it ({found.id})"


def _check(session: Session, pending: int) -> None:
    if pending >= MAX_PENDING:
        raise WakeError(TOO_MANY.format(count=pending))
    chain = chained(session.ledger.transcript.messages)
    if chain >= MAX_CHAIN:
        raise WakeError(CHAINED.format(count=chain))


async def _added(timers: Timers, session: Session, order: WakeOrder, key: str) -> Timer:
    timer = Timer(
        id=key,
        rule=IntervalRule(order.seconds),
        prompt=prompt_of(order),
        due=0,
        made=0,
        by="the model",
        origin="wake",
        session=session.id,
        times=1,
    )
    try:
        return await timers.add(timer)
    except CommandError as error:
        raise WakeError(error.sentence) from error
