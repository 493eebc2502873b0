"""What users may spend in a day, and have spent: the quotas of the configuration, for the daemons of a database together.

    look -> refusal? -> reserve -> settle          around each model request

What is stored counts, from all daemons. Requests of this daemon that are under way, or not stored yet, are added.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from zotd.clock import rfc3339
from zotd.config import quota_of
from zotd.config.current import CurrentConfig
from zotd.core import budget
from zotd.core.budget import BudgetLimits
from zotd.core.ports import StorageError
from zotd.store.user_days import DAY_CHARS
from zotd.wire.content import Tokens

READ_S = 2.0
"""Longest wait for one read. Commands of a session, such as an abort, wait behind a look: for two reads at most, because
one that begins while several looks wait serves them all."""

log = logging.getLogger(__name__)


class _UserDay:
    """What is known of one user today."""

    def __init__(self, day: str) -> None:
        self.day = day
        self.usd = 0.0
        self.looked = -float("inf")
        """When the last read began."""
        self.turn = asyncio.Lock()
        """First come, first served, so that no command overtakes another one of its session."""


class UserSpending:
    """The spending of all users that are limited, in this process. A day is one of UTC: daemons may be in several time zones."""

    def __init__(
        self,
        config: CurrentConfig,
        read: Callable[[str, str], Awaitable[float]],
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`read` returns what is stored of a user and a day, in USD. `now` is the time in seconds since the epoch."""
        self._config = config
        self._read = read
        self._now = now
        self._days: dict[str, _UserDay] = {}
        """By user, of those who are limited."""
        self._reserved: dict[int, tuple[str, float]] = {}
        """By reservation: the user, and what is set aside in USD."""

    async def look(self, user: str, *, within_s: float = 0.0) -> None:
        """Read what the user has spent, if that is limited and no read has begun in the last `within_s` seconds or since.

        If it cannot be read within `READ_S`, what is known holds.
        """
        if self._limit(user) is None:
            return
        known, since = self._today_of(user), time.monotonic() - within_s
        async with known.turn:
            if known.looked > since:
                return  # also if the read began while this waited for its turn
            began = time.monotonic()
            try:
                async with asyncio.timeout(READ_S):
                    usd = await self._read(user, known.day)
            except (StorageError, TimeoutError) as error:
                log.warning("what the user %r has spent today cannot be read: %s", user, str(error) or "no answer")
                usd = 0.0
            # Not less than was known: a request that has just ended may not be stored yet.
            known.usd, known.looked = max(known.usd, usd), began

    def refusal(self, user: str) -> str | None:
        """Return why sessions of this user may not send a request, and what to do; None if they may."""
        limit = self._limit(user)
        if limit is None:
            return None
        lack = budget.shortage(BudgetLimits(limit), *self._taken(user))
        if lack is None:
            return None
        way = f"continue after 00:00 UTC, or raise `usd_per_day` for {user} in config.toml and run zotctl reload"
        return f"what the user {user} may spend today is used up: {lack}; {way}"

    def is_scarce(self, user: str, estimate: Tokens) -> bool:
        """Whether a request that is not needed now would bring the user above `budget.WARN_FROM` of the limit."""
        limit = self._limit(user)
        if limit is None:
            return False
        spent, reserved = self._taken(user)
        return budget.shortage(budget.nearly(BudgetLimits(limit)), spent, reserved + estimate) is not None

    def reserve(self, reservation: int, user: str, estimate: Tokens) -> None:
        """Set this aside for a request that is about to be sent, under the number of a reservation."""
        self._reserved[reservation] = user, estimate.cost_usd

    def settle(self, reservation: int, took: Tokens) -> None:
        """Count what the request took instead, if something was reserved."""
        user, _ = self._reserved.pop(reservation, ("", 0.0))
        if user in self._days:
            self._today_of(user).usd += took.cost_usd

    def _limit(self, user: str) -> float | None:
        return quota_of(self._config.value.users, user).usd_per_day

    def _taken(self, user: str) -> tuple[Tokens, Tokens]:
        """Return what the user has spent today, and what is set aside for requests under way."""
        aside = sum(usd for whose, usd in self._reserved.values() if whose == user)
        return Tokens(cost_usd=self._today_of(user).usd), Tokens(cost_usd=aside)

    def _today_of(self, user: str) -> _UserDay:
        today, known = rfc3339(self._now())[:DAY_CHARS], self._days.get(user)
        if known is None or known.day < today:  # not if the clock was put back: that gives no second budget
            known = self._days[user] = _UserDay(today)
        return known
