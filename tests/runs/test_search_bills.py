"""What the usage row of a search says."""

import pytest

from zotd.core.budget import Rates
from zotd.core.records import UsageRow
from zotd.core.transcript import Transcript
from zotd.core.web_access import SearchEngine, SearchFigures
from zotd.ledger.spending import Spending
from zotd.runs.recovery import beside_unbilled
from zotd.runs.search_bills import GUESSED_USD, RunSearchBill
from zotd.wire.content import Tokens


def bill(usd):
    """A search by a model that costs a dollar for a million tokens."""
    engine = SearchEngine("anthropic", "", "k", "m", Rates(1.0, 1.0))
    return RunSearchBill(Spending().floor, engine, "foxes", usd=usd)


def test_an_unknown_price_of_a_search_is_an_estimate_and_in_no_known_cost():
    made = bill(None)
    made.sent()
    made.took(SearchFigures(Tokens(input=10, cost_usd=0.5), 2))
    row = made.row("r_1", "")
    assert row.tokens is not None
    assert row.tokens.cost_usd == pytest.approx(0.5)
    assert row.estimate is not None
    assert row.estimate.cost_usd == pytest.approx(0.5 + 2 * GUESSED_USD)


def test_a_search_that_was_not_sent_is_free():
    row = bill(0.01).row("r_1", "")
    assert (row.tokens, row.estimate, row.took_s) == (Tokens(), None, None)


def test_a_search_without_figures_counts_with_its_estimate():
    made = bill(0.01)
    made.sent()
    row = made.row("r_1", "")
    assert (row.tokens, row.estimate) == (None, made.estimate)


def test_a_search_that_a_crash_has_cut_is_billed_with_its_estimate_when_the_session_is_read():
    transcript, made = Transcript(), bill(0.01)
    transcript.apply(made.attempt("r_1", "c1"))
    (row,) = (one.record for one in beside_unbilled(transcript, ""))
    assert isinstance(row, UsageRow)
    assert (row.purpose, row.tokens, row.estimate) == ("web_search", None, made.estimate)
    transcript.apply(row)
    assert beside_unbilled(transcript, "") == []
