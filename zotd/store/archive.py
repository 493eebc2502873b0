"""Queries over all sessions: full-text search, earlier prompts, and usage of models."""

import asyncio
import logging
from functools import partial

from zotd.core.ports import StorageError
from zotd.store import branches, prompts, search, usage
from zotd.store.audit import AuditTrail
from zotd.store.branches import Branches
from zotd.store.errors import is_damage
from zotd.store.ports import JournalDatabase
from zotd.store.user_days import UserDays
from zotd.store.writer import WriterCounts
from zotd.wire.base import encode
from zotd.wire.content import Tokens
from zotd.wire.reports import PastPrompt, PromptPage, SearchPage, UsageSum

CATCH_UP_S = 5.0
"""Longest time that a search waits for the index, which grows by about 20 MB of text per second. Only the first search
after an update of the program usually has to wait. Afterwards the search uses what is indexed."""

PROMPT_SLICES = 10
"""Slices of 500 prompts that one request examines, in 20 ms. A client that wants older ones sends another request."""

PAGE_BYTES = 4 * 1024 * 1024 - 4096
"""Size of the prompts in one response, so that it fits into a frame."""

log = logging.getLogger(__name__)


class Archive:
    """The stored sessions of a database that the caller opens and closes."""

    def __init__(self, database: JournalDatabase) -> None:
        self._database = database
        self._has_begun_anew = False
        self.audit = AuditTrail(database)
        self.user_days = UserDays(database)

    @property
    def counts(self) -> WriterCounts:
        """Number of writes since the database was opened."""
        return self._database.counts

    async def search(self, query: str, *, before: int | None = None, limit: int = 50) -> SearchPage:
        """Return messages of all sessions with all the words of `query`, newest first, `limit` at a time.

        Every query is valid: `"several words in quotes"` are a phrase, everything else is a word. `before` is the
        cursor of the previous page; pages do not shift when messages are added.

        Raises:
            StorageError: the database cannot be read.
        """
        complete = await self._catch_up()
        # One more than wanted, to know whether there is another page.
        find = partial(self._database.index.find, query=query, before=before, limit=limit + 1)
        try:
            found = await self._database.read(find)
        except StorageError as error:
            if not is_damage(error.__cause__) or self._has_begun_anew:
                raise
            self._has_begun_anew = True  # only once: if rebuilding does not help, the damage is elsewhere
            await self._database.perform(self._database.index.begin_anew)
            complete = await self._catch_up()
            found = await self._database.read(find)
        cursor = str(found[limit - 1][0]) if len(found) > limit else None
        return SearchPage([hit for _, hit in found[:limit]], cursor, complete)

    async def prompts(self, query: str, *, before: int | None = None, limit: int = 50) -> PromptPage:
        """Return the prompts of all sessions that contain `query` in any case, newest first, without duplicates.

        `before` is the cursor of the previous page. A call examines at most `PROMPT_SLICES`, with other reads in
        between; a page may therefore have fewer than `limit` prompts and still a cursor.

        Raises:
            StorageError: the database cannot be read.
        """
        wanted = query.casefold()
        found: dict[str, PastPrompt] = {}
        end, room = prompts.MAX_KEY if before is None else before, PAGE_BYTES
        for _ in range(PROMPT_SLICES):
            part = await self._database.read(partial(prompts.before, key=end))
            for key, prompt in part.prompts:
                if prompt.text in found or wanted not in prompt.text.casefold():
                    continue
                room -= len(encode(prompt)) + 1  # and a comma
                if len(found) == limit or room < 0:
                    return PromptPage(list(found.values()), str(end))
                found[prompt.text] = prompt
                end = key
            if part.end is None:
                return PromptPage(list(found.values()))
            end = part.end
        return PromptPage(list(found.values()), str(end))

    async def usage(self, *, since: str = "", by: str = "model") -> list[UsageSum]:
        """Return the usage of models since then; see `zotd.store.usage.sums`.

        Raises:
            StorageError: the database cannot be read.
        """
        return await self._database.read(partial(usage.sums, since=since, by=by))

    async def spent(self, since: str) -> Tokens:
        """Return the usage that budgets count since then; see `zotd.store.usage.spent`.

        Raises:
            StorageError: the database cannot be read.
        """
        return await self._database.read(partial(usage.spent, since=since))

    @property
    def trouble(self) -> str | None:
        """Return why the database cannot be written at present, or None if it can as far as is known."""
        return self._database.recovery.trouble

    async def compact(self) -> tuple[int, int]:
        """Return free space to the file system; see `JournalDatabase.compact`."""
        return await self._database.compact()

    async def branches(self, session: str, last: int) -> Branches:
        """Return the branches of a session, whose last event is `last`, and its forks.

        Raises:
            StorageError: the database cannot be read.
        """
        return await self._database.read(partial(branches.branches, session=session, last=last))

    async def _catch_up(self) -> bool:
        """Bring the index up to date with the commits; False if that takes too long, or the disk is full."""
        # A search with an incomplete index is more useful than an error; the response says `complete: false`.
        try:
            async with asyncio.timeout(CATCH_UP_S):
                while await self._database.read(search.is_behind):
                    await self._advance()
        except TimeoutError:
            return False
        except StorageError as error:
            log.warning("the search index could not be brought up to date: %s", error)
            return False
        return True

    async def _advance(self) -> None:
        index = self._database.index
        met = index.met
        try:
            await self._database.perform(index.keep_up)
        except StorageError:
            if index.met == met:  # else the next attempt skips the damaged record
                raise
