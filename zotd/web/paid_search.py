"""Searches of the web that cost something, beside those that do not."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from zotd.core.web_access import SearchBill, SearchEngine
from zotd.web.errors import SearchRefusedError
from zotd.web.searching import SearchAnswer, search

Pay = Callable[[SearchEngine, str], AbstractAsyncContextManager[SearchBill]]
"""Enter before the engine searches for a text."""


async def paid_search(engine: SearchEngine, query: str, *, number: int, pay: Pay | None) -> SearchAnswer:
    """Search as `search` does, and pay for it if a vendor's model searches. Raises WebError, also if it cannot be paid for."""
    if not engine.model:
        return await search(engine, query, number=number)
    if pay is None:
        raise SearchRefusedError(
            f"a search by {engine.name} costs money, and only calls of the model itself are paid for"
        )
    async with pay(engine, query) as bill:
        try:
            answer = await search(engine, query, number=number)
        except SearchRefusedError:
            bill.free()
            raise
        if (figures := answer.figures) is not None:
            bill.took(figures)
    return answer
