"""Commands about what was said in all sessions."""

from zotd.api.dispatch import Call
from zotd.api.methods.shared import connection_of, wait_for_room
from zotd.wire import api, reports
from zotd.wire.errors import Code, CommandError

QUERY_CHARS = 1_000
"""A query is typed; each of its words is looked up."""

MAX_HITS = 100
"""In one answer."""


async def search(call: Call, params: api.Search) -> reports.SearchPage:
    """A page of messages with these words, newest first."""
    query = params.query.strip()
    if not query or len(query) > QUERY_CHARS:
        raise CommandError(Code.BAD_REQUEST, f"a query has 1 to {QUERY_CHARS} characters")
    archive = connection_of(call).house.archive
    page = await archive.search(query, before=_place(params.cursor), limit=max(1, min(params.limit, MAX_HITS)))
    await wait_for_room(call)
    return page


def _place(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit()):
        raise CommandError(Code.BAD_REQUEST, "the cursor is none that session.search has given")
    return int(cursor)
