"""Who pays for a search."""

import pytest

from zotd.core.web_access import SearchEngine
from zotd.web.errors import WebError
from zotd.web.paid_search import paid_search


async def test_a_search_that_nobody_pays_for_is_not_made():
    engine = SearchEngine("anthropic", "http://127.0.0.1:9/", "k", "m")
    with pytest.raises(WebError, match="only calls of the model itself are paid for"):
        await paid_search(engine, "q", number=5, pay=None)


async def test_a_search_without_a_model_needs_no_payer():
    with pytest.raises(WebError, match="cannot be reached"):
        await paid_search(SearchEngine("searxng", "http://127.0.0.1:9/", ""), "q", number=5, pay=None)
