"""What all sessions of this process may spend together, and each of them: the budgets of the configuration.

    refusal? -> reserve -> settle          around each model request; `runs.request` does it

The day's sum is read from the usage rows when the daemon starts, and kept in memory from then on. A session's own is
in its row of the journal (`core.ports.SessionRow.spent`), which changes in the same commit as its usage rows.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime

from zotd.clock import rfc3339
from zotd.config import BudgetSection
from zotd.config.current import CurrentConfig
from zotd.core import budget
from zotd.core.budget import BudgetLimits, Floor, Pot
from zotd.core.ports import SessionRow
from zotd.core.records import Settings
from zotd.ledger.user_spending import UserSpending
from zotd.store.journal import StoredJournal
from zotd.store.user_days import UserDays
from zotd.wire.content import Tokens
from zotd.wire.errors import Code, CommandError
from zotd.wire.reports import BudgetState

TODAY = "the budget of today"

OF_SESSION = "the budget of this session"

OF_SUBAGENT = "the budget of this subagent"

OF_PARENT = "the budget of the session that began this subagent"

UNLIMITED = BudgetLimits()


class Spending:
    """One for a process. A day is that of the computer's time zone: people mean their own."""

    def __init__(
        self,
        limits: BudgetSection | None = None,
        *,
        now: Callable[[], float] = time.time,
        users: UserSpending | None = None,
    ) -> None:
        """Without `limits` nothing is limited, and without `users` no user. `now` is the time in seconds since the epoch."""
        self._users = users
        self._now = now
        self._day = self._today()
        self._pot = Pot()
        self._above: dict[str, Callable[[], SessionRow]] = {}
        """By the id of a subagent that works now: the row of the session that has begun it."""
        self._counts_days = False
        """False: there is no daily budget, so no step has to find out which day it is (10 us each time)."""
        self._limit(limits or BudgetSection())

    async def recall(self, since: Callable[[str], Awaitable[Tokens]]) -> None:
        """Begin with what is on record for today; `since` gives what was spent from a time (RFC 3339, UTC) on.

        Raises:
            StorageError: it could not be read; the day begins with nothing then.
        """
        if self._counts_days:
            midnight = datetime(self._day.year, self._day.month, self._day.day).astimezone()
            self._pot.add(await since(rfc3339(midnight.timestamp())))

    async def change(self, limits: BudgetSection, since: Callable[[str], Awaitable[Tokens]]) -> None:
        """Other budgets from now on; `since` as in `recall`, which is called if the day was not counted so far.

        Raises:
            StorageError: as there.
        """
        counted = self._counts_days
        self._limit(limits)
        if not counted:
            self._day = self._today()
            self._pot.empty()
            await self.recall(since)

    async def look(self, user: str, *, within_s: float = 0.0) -> None:
        """Find out what a user has spent, for the next `refusal`, unless that was done in the last `within_s` seconds."""
        if self._users is not None:
            await self._users.look(user, within_s=within_s)

    # --- before a request -----------------------------------------------------------------------------------------

    def refusal(self, row: SessionRow | None) -> str | None:
        """Return why this session may not send a request, and what to do; None if it may.

        `row`: None for a session that does not exist yet, for which only the day's budget counts.
        """
        if self._counts_days:
            pot = self._today_s_pot()
            if (lack := budget.shortage(self._daily, pot.spent, pot.reserved)) is not None:
                way = f"raise budget.day_{lack.unit} in config.toml and run zotctl reload, or continue tomorrow"
                return f"{TODAY} is used up: {lack}; {way}"
        if row is None:
            return None
        if row.user and self._users is not None and (sentence := self._users.refusal(row.user)) is not None:
            return sentence
        settings = row.settings
        is_own = settings.budget_usd is not None or settings.budget_tokens is not None
        limits = self._limits(settings) if is_own else self._of_session
        if limits != UNLIMITED and (lack := budget.shortage(limits, row.spent + row.spent_below)) is not None:
            whose = OF_SESSION if row.parent is None else OF_SUBAGENT
            return f"{whose} is used up: {lack}; raise it with --budget-{lack.unit}, or begin another session"
        if row.parent is not None and (above := self._above.get(row.id)) is not None:
            sentence = self.refusal(above())
            return None if sentence is None else sentence.replace(OF_SESSION, OF_PARENT)
        return None

    def is_scarce(self, row: SessionRow, estimate: Tokens) -> bool:
        """Whether a request that is not needed now would bring a budget above `budget.WARN_FROM` of it."""
        if self._counts_days:
            pot = self._today_s_pot()
            if budget.shortage(budget.nearly(self._daily), pot.spent, pot.reserved + estimate) is not None:
                return True
        if row.user and self._users is not None and self._users.is_scarce(row.user, estimate):
            return True
        spent = row.spent + row.spent_below
        return budget.shortage(budget.nearly(self._limits(row.settings)), spent, estimate) is not None

    def check(self, row: SessionRow | None) -> None:
        """Raise CommandError (`budget_exceeded`) when there is a `refusal`."""
        sentence = self.refusal(row)
        if sentence is not None:
            raise CommandError(Code.BUDGET_EXCEEDED, sentence)

    @contextmanager
    def below(self, session: str, above: Callable[[], SessionRow]) -> Iterator[None]:
        """Inside the block, a session may spend only what is left to the one that `above` returns, and to those above."""
        self._above[session] = above
        try:
            yield
        finally:
            del self._above[session]

    def reserve(self, estimate: Tokens, user: str = "") -> int:
        """Set this aside for a request of a user (empty: of none) that is about to be sent; the result is for `settle`."""
        pot = self._today_s_pot() if self._counts_days else self._pot
        reservation = pot.reserve(estimate)
        if user and self._users is not None:
            self._users.reserve(reservation, user, estimate)
        return reservation

    def settle(self, reservation: int, took: Tokens) -> None:
        """Count what the request took instead; once."""
        self._today_s_pot().settle(reservation, took)
        if self._users is not None:
            self._users.settle(reservation, took)

    # --- looking --------------------------------------------------------------------------------------------------

    def states(self, sessions: Iterable[SessionRow]) -> list[BudgetState]:
        """The day's budget and those of these sessions, where anything is limited."""
        pot = self._today_s_pot()
        found = [_state("day", self._daily, pot.spent, pot.reserved)]
        found += [
            _state("session", self._limits(row.settings), row.spent + row.spent_below, Tokens(), row=row)
            for row in sessions
        ]
        return [state for state in found if state.limit_usd is not None or state.limit_tokens is not None]

    def warnings(self, sessions: Iterable[SessionRow]) -> list[str]:
        """A sentence for each of these budgets of which `budget.WARN_FROM` or more is spent."""
        found = [(TODAY, budget.closest(self._daily, self._today_s_pot().spent))]
        found += [
            (
                f"the budget of {row.name or row.id}",
                budget.closest(self._limits(row.settings), row.spent + row.spent_below),
            )
            for row in sessions
        ]
        return [
            f"{whose} is {'used up' if spent.spent >= spent.limit else 'nearly used up'}: {spent}"
            for whose, spent in found
            if spent is not None and spent.spent >= budget.WARN_FROM * spent.limit
        ]

    # --- inside ---------------------------------------------------------------------------------------------------

    def _limit(self, limits: BudgetSection) -> None:
        self.floor = Floor(limits.unknown_usd, limits.unknown_tokens)
        """The least that a request of unknown cost counts with."""
        self._daily = BudgetLimits(limits.day_usd, limits.day_tokens)
        self._of_session = BudgetLimits(limits.session_usd, limits.session_tokens)
        self._counts_days = self._daily != UNLIMITED

    def _limits(self, settings: Settings) -> BudgetLimits:
        """A session's own budget goes before the configured one, each of the two limits for itself."""
        usd, tokens = settings.budget_usd, settings.budget_tokens
        return BudgetLimits(
            self._of_session.usd if usd is None else usd,
            self._of_session.tokens if tokens is None else tokens,
        )

    def _today_s_pot(self) -> Pot:
        """A new day begins with nothing spent; what is under way counts for the day in which it ends."""
        if self._counts_days:
            today = self._today()
            if today > self._day:  # a clock that was put back, or a flight to the west, gives no second budget
                self._day = today
                self._pot.empty()
        return self._pot

    def _today(self) -> date:
        return datetime.fromtimestamp(self._now(), UTC).astimezone().date()


def spending_of(config: CurrentConfig, journal: StoredJournal | None) -> Spending:
    """Return what limits the sessions of a process: the budgets, and the quotas of users if it stores sessions."""
    users = None if journal is None else UserSpending(config, UserDays(journal.database).spent)
    return Spending(config.value.budget, users=users)


def check_budget(usd: float | None, tokens: int | None) -> None:
    """Raise CommandError for a session's budget with which no request could be made."""
    for name, limit in (("budget_usd", usd), ("budget_tokens", tokens)):
        if limit is not None and not limit > 0:
            raise CommandError(Code.BAD_REQUEST, f"{name} must be above 0, {limit} is not")


def _state(
    scope: str, limits: BudgetLimits, spent: Tokens, reserved: Tokens, *, row: SessionRow | None = None
) -> BudgetState:
    usd, tokens = spent.cost_usd + reserved.cost_usd, spent.total + reserved.total
    return BudgetState(
        scope=scope,
        limit_usd=limits.usd,
        limit_tokens=limits.tokens,
        spent_usd=spent.cost_usd,
        spent_tokens=spent.total,
        reserved_usd=reserved.cost_usd,
        reserved_tokens=reserved.total,
        left_usd=None if limits.usd is None else max(0.0, limits.usd - usd),
        left_tokens=None if limits.tokens is None else max(0, limits.tokens - tokens),
        session=row.id if row else "",
        name=row.name if row else "",
    )
