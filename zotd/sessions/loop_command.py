"""`/loop`: has a session's prompt sent again and again (`docs/timers.md`).

/loop 10m PROMPT      now, and then every ten minutes
/loop                 lists the loops of the session
/loop stop [ID]       ends them all, or one
"""

from collections.abc import Sequence

from zotd.clock import rfc3339
from zotd.core.timers import Timer
from zotd.sessions.session import Session
from zotd.sessions.timer_orders import ordered, rule_words
from zotd.sessions.timers import Timers
from zotd.wire.errors import Code, CommandError
from zotd.wire.intervals import interval_words, read_interval
from zotd.wire.timers import TimerAdd

STOP = "stop"

USAGE = "/loop takes an interval and a prompt, as in /loop 10m check the CI; /loop lists the loops, and /loop stop ends them"

PROMPT_CHARS = 80
"""Most characters of a prompt in the list."""


async def loop(timers: Timers, session: Session, args: str, by: str) -> str:
    """Carry out `/loop args` in this session for a client with this name; returns what it is shown.

    Raises CommandError: something about it is not possible; the sentence says what. StorageError: nothing can be stored.
    """
    first, _, rest = args.partition(" ")
    if not first:
        return _listed(_of(timers, session))
    if first.casefold() == STOP:
        return await _stop(timers, session, rest.strip())
    seconds = read_interval(first)
    if seconds is None or not rest.strip():
        raise CommandError(Code.BAD_REQUEST, USAGE)
    if session.ephemeral:
        raise CommandError(Code.CONFLICT, "the session is not stored, so it can have no loop")
    order = TimerAdd(message=rest.strip(), session=session.id, every_s=seconds, now=True, loop=True)
    timer = await timers.add(ordered(order, now=timers.now(), by=by, zone="UTC"))
    return f"{timer.id} begins now, and then every {interval_words(seconds)}; /loop stop ends it"


async def _stop(timers: Timers, session: Session, key: str) -> str:
    ended = [timer for timer in _of(timers, session) if timer.id.startswith(key)]
    if not ended:
        what = f'no loop "{key}"' if key else "no loop"
        raise CommandError(Code.NOT_FOUND, f"the session has {what}; {USAGE}")
    for timer in ended:
        await timers.remove(timer)
    return "\n".join(f"{timer.id} has ended; what it has begun goes on" for timer in ended)


def _of(timers: Timers, session: Session) -> Sequence[Timer]:
    return [timer for timer in timers.listed(session.id) if timer.origin == "loop"]


def _listed(loops: Sequence[Timer]) -> str:
    if not loops:
        return f"the session has no loop; {USAGE}"
    return "\n".join(f"{timer.id}  {rule_words(timer.rule)}  {_state(timer)}  {_words(timer)}" for timer in loops)


def _state(timer: Timer) -> str:
    if timer.paused is not None:
        return f"paused: {timer.paused}" if timer.paused else "paused"
    return f"next at {rfc3339(timer.due)[11:16]} UTC"


def _words(timer: Timer) -> str:
    return " ".join(timer.prompt.split())[:PROMPT_CHARS]
