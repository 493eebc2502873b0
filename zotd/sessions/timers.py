"""The timers of a daemon: which there are, and a loop that looks at the clock and fires what is due (`docs/timers.md`).

    stored timer ──> due ──> its claim is stored ──> the prompt is stored ──> the next due time is stored

Each arrow may be the last thing that a daemon does. The next one carries the claim out again, and the session takes its prompt once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from datetime import UTC, tzinfo
from functools import lru_cache

from msgspec.structs import replace

from zotd import ids
from zotd.core import timers
from zotd.core.due_times import BadRuleError, CronRule, DueTimes, TimerRule, due_times
from zotd.core.ports import Probe, StorageError
from zotd.core.timers import ChangedTimer, ClaimOutcome, DueTimer, EndedTimer, NotDue, Timer
from zotd.sessions.manager import Manager, Spawn
from zotd.sessions.opening import SessionElsewhereError
from zotd.sessions.timer_firings import TimerFirings
from zotd.store.ownership import TimerElsewhereError
from zotd.store.timers import TimerStore
from zotd.wire import events
from zotd.wire.errors import Code, CommandError

MAX_TIMERS = 200
"""Most timers of a home."""

MAX_OF_SESSION = 20
"""Most timers of a session."""

LOOK_S = 60.0
"""Longest time between two looks at the clock, which may have jumped."""

RETRY_S = 60.0
"""Until a firing is tried again for which the journal could not be used."""

POINTS = ("timer claimed", "timer fired", "timer advanced")
"""Where the probe is called for each firing: the claim is on disk, the prompt is, the next due time is."""

HIGHER_LIMIT = "{why}; `zotctl schedule edit {id} --limit-usd` sets a higher one"

log = logging.getLogger(__name__)


class Timers:
    """Keeps timers and fires them. Methods for people raise CommandError, and StorageError if nothing can be stored."""

    def __init__(
        self,
        manager: Manager,
        store: TimerStore,
        firings: TimerFirings,
        *,
        spawn: Spawn,
        clock: Callable[[], float],
        probe: Probe | None = None,
    ) -> None:
        """`clock` returns seconds since the epoch. `spawn` starts a named task for a firing."""
        self._manager = manager
        self._store = store
        self._firings = firings
        self._spawn = spawn
        self._clock = clock
        self.now: Callable[[], int] = lambda: int(clock())
        """Returns the time in whole seconds since the epoch."""
        self._reach = probe or (lambda _: None)
        self._timers: dict[str, Timer] = {}
        self._at_work: set[str] = set()
        """Timers whose claims are being carried out."""
        self._deferred: dict[str, float] = {}
        """When the loop looks again at timers for which the journal could not be used, by its own clock."""
        self._changes = 0
        """How often a change has been begun or ended."""
        self._woken = asyncio.Event()
        self._listeners: dict[Callable[[], None], None] = {}
        self.pause_listeners: list[Callable[[Timer, str], None]] = []
        """Called with each timer that pauses itself, and a sentence that says why."""

    # --- what there is ----------------------------------------------------------------------------------------

    @property
    def is_active(self) -> bool:
        """Whether one will fire by itself, so that the daemon has to stay."""
        return any(timer.paused is None for timer in self._timers.values())

    def prompted(self) -> Collection[str]:
        """Return the sessions that timers prompt."""
        return {timer.session for timer in self._timers.values() if timer.session}

    def listen(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` when there are others than before; call the result to stop."""
        self._listeners[changed] = None
        return lambda: self._listeners.pop(changed, None)

    def listed(self, session: str = "") -> Sequence[Timer]:
        """Return all timers, or those of a session, oldest first; looks at the clock as well."""
        self._woken.set()
        return [timer for _, timer in sorted(self._timers.items()) if session in {"", timer.session}]

    async def forget_deleted(self) -> None:
        """Forget timers whose session was deleted, with which they were deleted from the journal."""
        for session in self.prompted():
            if not await self._firings.has(session):
                for timer in self.listed(session):
                    self._timers.pop(timer.id, None)

    def get(self, key: str, session: str = "") -> Timer:
        """Return the only timer whose id begins so, of this session if one is named; raises CommandError."""
        found = [timer for timer in self.listed(session) if timer.id.startswith(key)] if key else []
        exact = [timer for timer in found if timer.id == key] or found
        if len(exact) == 1:
            return exact[0]
        if exact:
            raise CommandError(
                Code.CONFLICT, f'"{key}" is not unique; it could be {", ".join(one.id for one in exact[:5])}'
            )
        raise CommandError(Code.NOT_FOUND, f'there is no timer "{key}"; `zotctl schedule list` names them')

    async def spent(self, timer: Timer) -> float:
        """Return what the timer has cost in USD, with the firing that may not have ended."""
        return timer.spent_usd + (await self._firings.account(timer.latest)).usd

    # --- what people and models change ------------------------------------------------------------------------

    async def add(self, timer: Timer) -> Timer:
        """Store a new timer, with an id and the first due time that follows from its rule unless it has them."""
        if len(self._timers) >= MAX_TIMERS:
            raise CommandError(Code.CONFLICT, f"there are {MAX_TIMERS} timers already; remove one")
        if timer.session and len(self.listed(timer.session)) >= MAX_OF_SESSION:
            raise CommandError(Code.CONFLICT, f"the session has {MAX_OF_SESSION} timers already; remove one")
        now = self.now()
        due = timer.due or times_of(timer.rule).after(now)
        if due is None or (timer.until is not None and due > timer.until):
            raise CommandError(Code.BAD_REQUEST, "the timer would never be due: the time is over")
        added = replace(timer, id=timer.id or ids.new("t"), due=due, made=now)
        await self._keep(added)
        return added

    async def change(self, key: str, how: Callable[[Timer], Timer]) -> Timer:
        """Store what `how` makes of the timer as it is now, and return it; what it fires at the moment goes on.

        `how` may raise CommandError, and must not change the claim.
        """
        current = self._current(key)
        changed = how(current)
        return current if changed == current else await self._keep(changed)

    async def resume(self, timer: Timer) -> Timer:
        """Fire it again, from now on."""
        if timer.paused is None:
            return timer
        if (why := timers.over_limit(timer, await self.spent(timer))) is not None:
            raise CommandError(Code.CONFLICT, HIGHER_LIMIT.format(why=why, id=timer.id))
        current = self._current(timer.id)
        return await self._keep(timers.resumed(current, self.now(), times_of(current.rule)))

    async def remove(self, timer: Timer) -> None:
        """Forget it; what it has begun goes on."""
        await self._drop(timer.id)

    async def fire(self, timer: Timer) -> ClaimOutcome:
        """Fire it now, beside its due times; returns what came of that."""
        if (why := timers.over_limit(timer, await self.spent(timer))) is not None:
            raise CommandError(Code.CONFLICT, HIGHER_LIMIT.format(why=why, id=timer.id))
        current = self._current(timer.id)
        if current.claim is not None or timer.id in self._at_work:
            raise CommandError(Code.CONFLICT, f"{timer.id} is being fired at the moment")
        claimed = timers.claimed_by_hand(current, self.now())
        self._at_work.add(timer.id)
        try:
            await self._keep(claimed)
            return await self._carry_out(claimed)
        finally:
            self._at_work.discard(timer.id)

    # --- the loop ---------------------------------------------------------------------------------------------

    async def load(self) -> None:
        """Load the timers of this daemon, which may be others than before; raises StorageError if they cannot be read.

        Call it before anything else.
        """
        before, found = self._changes, await self._store.all()
        while before != self._changes:  # what was changed meanwhile may be missing
            before, found = self._changes, await self._store.all()
        self._timers = {timer.id: timer for timer in found}
        self._changed()

    async def run(self) -> None:
        """Fire what is due, until cancelled."""
        while True:
            self._woken.clear()
            wait_s = LOOK_S
            for key in list(self._timers):
                wait_s = min(wait_s, await self._look(key))
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._woken.wait()

    async def _look(self, key: str) -> float:
        """Do what follows from the clock for one timer; returns after how many seconds to look again."""
        timer, now = self._timers.get(key), self._clock()
        if timer is None or key in self._at_work or self._manager.is_stopping:
            return LOOK_S
        deferred_s = self._deferred.get(key, 0.0) - asyncio.get_running_loop().time()
        if deferred_s > 0:
            return deferred_s
        self._deferred.pop(key, None)
        try:
            found = timers.look(timer, int(now), times_of(timer.rule))
        except BadRuleError as error:  # a time zone that was known when the timer was made
            found = ChangedTimer(replace(timer, paused=str(error))) if timer.paused is None else NotDue(None)
        match found:
            case DueTimer(claimed):
                self._at_work.add(key)
                self._spawn(f"timer {key}", self._fire(timer, claimed))
            case ChangedTimer(changed):
                await self._try(key, self._keep(changed))
                if changed.paused:
                    self._tell_paused(changed)
                return 0.0
            case EndedTimer(why):
                log.info("the timer %s ends: %s", key, why)
                await self._try(key, self._drop(key))
            case NotDue(until):
                return LOOK_S if until is None else max(until - now, 0.0)
        return LOOK_S

    async def _fire(self, timer: Timer, claimed: Timer) -> None:
        """Carry out the claim of a timer that is due, `claimed`, unless the timer has changed or may spend no more."""
        key = timer.id
        try:
            if timer.claim is None:
                why = timers.over_limit(timer, await self.spent(timer))
                if self._timers.get(key) is not timer:
                    return
                await self._keep(claimed if why is None else replace(timer, paused=why))
                if why is not None:
                    self._tell_paused(self._current(key))
                    return
            await self._carry_out(claimed)
        except (SessionElsewhereError, TimerElsewhereError) as error:
            log.info("the timer %s is fired by another daemon: %s", key, error)
            self._deferred[key] = asyncio.get_running_loop().time() + RETRY_S
            await self._try(key, self.load())
        except (StorageError, CommandError) as error:
            log.warning("the timer %s is tried again: %s", key, error)
            self._deferred[key] = asyncio.get_running_loop().time() + RETRY_S
        finally:
            self._at_work.discard(key)
            self._woken.set()

    async def _carry_out(self, claimed: Timer) -> ClaimOutcome:
        self._reach(POINTS[0])
        outcome = await self._firings.carry_out(claimed, self.now())
        self._reach(POINTS[1])
        current = self._timers.get(claimed.id)
        if current is None or current.claim != claimed.claim:  # it was removed meanwhile
            return outcome
        following = timers.carried_out(current, outcome, times_of(current.rule))
        if following is None:
            log.info(
                "the timer %s has fired for the last time%s", current.id, outcome.sentence and f": {outcome.sentence}"
            )
            await self._drop(current.id)
        else:
            await self._keep(following)
            if following.paused and current.paused is None:
                self._tell_paused(following)
        self._reach(POINTS[2])
        return outcome

    # --- inside -----------------------------------------------------------------------------------------------

    def _current(self, key: str) -> Timer:
        if key not in self._timers:
            raise CommandError(Code.NOT_FOUND, f"the timer {key} is not there any more")
        return self._timers[key]

    async def _keep(self, timer: Timer) -> Timer:
        """Have the timer be like this, in memory at once; what could not be stored is not kept."""
        before = self._timers.get(timer.id)
        self._timers[timer.id] = timer
        self._changes += 1
        try:
            await self._store.put(timer)
        except StorageError:
            if before is None:
                self._timers.pop(timer.id, None)
            elif self._timers.get(timer.id) is timer:
                self._timers[timer.id] = before
            raise
        finally:
            self._changes += 1
            self._changed()
        return timer

    async def _drop(self, key: str) -> None:
        before = self._timers.pop(key, None)
        self._changes += 1
        try:
            await self._store.remove(key)
        except StorageError:
            if before is not None:
                self._timers[key] = before
            raise
        finally:
            self._changes += 1
            self._changed()

    async def _try(self, key: str, work: Awaitable[object]) -> None:
        """Await a change of the journal; if that fails, the timer is looked at again later."""
        try:
            await work
        except StorageError as error:
            log.warning("the timer %s cannot be stored: %s", key, error)
            self._deferred[key] = asyncio.get_running_loop().time() + RETRY_S

    def _changed(self) -> None:
        self._woken.set()
        for listener in list(self._listeners):
            listener()

    def _tell_paused(self, timer: Timer) -> None:
        """Tell the log, and those who follow the session, why the timer fires no more."""
        sentence = f"the timer {timer.id} is paused: {timer.paused}; `zotctl schedule resume {timer.id}` goes on"
        log.warning("%s", sentence)
        for session in self._manager.loaded:
            if session.id == timer.session:
                session.ledger.live([events.Notice("warn", sentence, session=session.ledger.label)])
        for listener in self.pause_listeners:
            listener(timer, sentence)


def zone_named(name: str) -> tzinfo:
    """Return a time zone of the IANA database.

    Raises:
        BadRuleError: this machine knows none of that name.
    """
    from zoneinfo import ZoneInfo  # noqa: PLC0415  (few daemons have a cron expression)

    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise BadRuleError(f'this machine knows no time zone "{name}"; Europe/Berlin is one, or UTC') from error


@lru_cache(maxsize=MAX_TIMERS)
def times_of(rule: TimerRule) -> DueTimes:
    """Return the due times of a rule; raises BadRuleError if it cannot be used."""
    return due_times(rule, zone_named(rule.zone) if isinstance(rule, CronRule) else UTC)
