"""Pays for searches of the web that a vendor's model makes for a tool call.

    allowed? ──> attempt on record ──> the search ──> its usage row

One at a time in a run. Nothing is repeated, neither after a failure nor after a restart.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from msgspec.structs import replace

from zotd.clock import rfc3339
from zotd.core import budget, records
from zotd.core.budget import CHARS_PER_TOKEN, Floor
from zotd.core.model_questions import WEB_SEARCH
from zotd.core.ports import StorageError
from zotd.core.retry import Failure
from zotd.core.web_access import SearchEngine, SearchFigures
from zotd.ledger.ledger import Ledger, Shown
from zotd.runs.context import RunContext
from zotd.runs.request_billing import ABORTED
from zotd.wire.content import Tokens

READS = 15_000
"""Tokens of the pages that the model reads for a search, as estimates assume."""

GUESSED_USD = 0.05
"""Price assumed for a search if it is unknown; the vendors whose prices are known charge a fifth of it."""


class SearchBills:
    """The paid searches of one run's tool calls."""

    def __init__(self, run: str, plan: RunContext, ledger: Ledger) -> None:
        self._run = run
        self._plan = plan
        self._ledger = ledger
        # The transcript knows one such request at a time.
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def paid(self, key: str, engine: SearchEngine, query: str) -> AsyncIterator["RunSearchBill"]:
        """Enter before the engine searches for the call `key`; on leaving, the search is billed. Safe to cancel.

        Raises:
            WebError: a budget is used up, or the journal cannot be written.
        """
        # The package is loaded by then: the tool has loaded it to search.
        from zotd.web.errors import WebError  # noqa: PLC0415
        from zotd.web.searching import PROVIDERS  # noqa: PLC0415

        async with self._turn:
            spending, user = self._plan.spending, self._ledger.row.user
            if user:
                await spending.look(user)
            if (sentence := spending.refusal(self._ledger.row)) is not None:
                raise WebError(f"{sentence}; tell the user")
            price = PROVIDERS[engine.name].price
            bill = RunSearchBill(spending.floor, engine, query, usd=None if price is None else price.usd)
            reservation = spending.reserve(bill.estimate, user)
            try:
                await self._ledger.write([Shown(bill.attempt(self._run, key))], durable=True)
                bill.sent()
                yield bill
            except StorageError as error:
                raise WebError(f"the journal cannot be written: {error}") from error
            except WebError:
                bill.failure = bill.failure or str(Failure.REFUSED)
                raise
            except asyncio.CancelledError:
                bill.failure = ABORTED
                raise
            finally:
                row = bill.row(self._run, rfc3339(self._plan.clock()))
                spending.settle(reservation, budget.counted(row))
                with suppress(
                    StorageError
                ):  # the session is read anew when the journal can be written, and bills it then
                    self._ledger.defer([Shown(row)], usage=row.tokens)


class RunSearchBill:
    """One search; `core.web_access.SearchBill`."""

    def __init__(self, floor: Floor, engine: SearchEngine, query: str, *, usd: float | None) -> None:
        """`floor`: the least that a request of unknown cost counts with. `usd`: price of a search beside the tokens; None: unknown."""
        self._floor = floor
        self._engine = engine
        self._usd = usd
        reads = READS + len(query) // CHARS_PER_TOKEN
        tokens = budget.estimate(reads, engine.rates, floor)
        self.estimate = tokens + Tokens(cost_usd=GUESSED_USD if usd is None else usd)
        """What the search counts as until the vendor sends figures."""
        self.failure = ""
        """`failure` of the usage row."""
        self._sent: float | None = None
        self._is_free = True
        self._figures: SearchFigures | None = None

    def attempt(self, run: str, key: str) -> records.Attempt:
        """Return the record of the search, which is about to be sent."""
        return records.Attempt(
            time=rfc3339(),
            run=run,
            step=0,
            number=0,
            provider=self._engine.name,
            model=self._engine.model,
            estimate=self.estimate,
            asked_by=f"{WEB_SEARCH}:{key}",
        )

    def sent(self) -> None:
        """The attempt is on record: from here on the search may cost something."""
        self._sent = time.monotonic()
        self._is_free = False

    def took(self, figures: SearchFigures) -> None:
        """Charge this."""
        self._figures = figures

    def free(self) -> None:
        """Charge nothing."""
        self._is_free = True

    def row(self, run: str, ended: str) -> records.UsageRow:
        """Return the usage row of the search, which is over since `ended`."""
        tokens, counted = self._cost()
        return records.UsageRow(
            time=ended,
            run=run,
            step=0,
            provider=self._engine.name,
            model=self._engine.model,
            tokens=tokens,
            purpose=WEB_SEARCH,
            estimate=counted,
            took_s=None if self._sent is None else round(time.monotonic() - self._sent, 4),
            failure=self.failure,
            searches=0 if self._figures is None else self._figures.searches,
        )

    def _cost(self) -> tuple[Tokens | None, Tokens | None]:
        """Return the known cost, and what budgets count instead of it if it is not all."""
        if self._is_free:
            return Tokens(), None
        if self._figures is None:
            return None, self.estimate
        tokens, searches = self._engine.price(self._figures.tokens), self._figures.searches
        corrected = budget.correction(
            tokens,
            is_whole=True,
            expected=self.estimate,
            rates=self._engine.rates,
            floor=self._floor,
        )
        known = replace(tokens, cost_usd=tokens.cost_usd + searches * (self._usd or 0.0))
        if corrected is None and (self._usd is not None or not searches):
            return known, None
        usd = GUESSED_USD if self._usd is None else self._usd
        return known, (corrected or tokens) + Tokens(cost_usd=searches * usd)
