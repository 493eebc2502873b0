"""Queries over all sessions: full-text search, earlier prompts, and usage of models."""

import asyncio
import logging
from functools import partial

from zotd.core.ports import StorageError
from zotd.store import branches, prompts, search, usage
from zotd.store.branches import Branches
from zotd.store.database import Database
from zotd.store.errors import is_damage
from zotd.store.writer import WriterCounts
from zotd.wire.base import encode
from zotd.wire.content import Tokens
from zotd.wire.reports import PastPrompt, PromptPage, SearchPage, UsageSum

CATCH_UP_S = 5.0
"""Longest wait of a search for the index, which takes about 20 MB of text in a second: only the first search after an
update of the program has to wait at all. What is in the index by then is searched."""

PROMPT_SLICES = 10
"""Parts of the prompts, 500 each, that one answer looks at: 20 ms. A client that wants to look further back asks again."""

PAGE_BYTES = 4 * 1024 * 1024 - 4096
"""Of prompts in one answer: what fits into a frame."""

log = logging.getLogger(__name__)


class Archive:
    """The stored sessions of a database, which the caller opens and closes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._has_begun_anew = False

    @property
    def counts(self) -> WriterCounts:
        """Number of writes since the database was opened."""
        return self._database.counts

    async def search(self, query: str, *, before: int | None = None, limit: int = 50) -> SearchPage:
        """Messages of all sessions with all the words of `query`, newest first, `limit` at a time.

        No query is an error: `"several words in quotes"` are a phrase, everything else is a word. `before` is the
        cursor of the page before; pages do not shift when messages are added.

        Raises:
            StorageError: the database cannot be read.
        """
        complete = await self._catch_up()
        find = partial(search.find, query=query, before=before, limit=limit + 1)
        try:
            found = await self._database.read(find)
        except StorageError as error:
            if not is_damage(error.__cause__) or self._has_begun_anew:
                raise
            self._has_begun_anew = True  # only once: if a new index does not help, the fault is elsewhere
            await self._database.perform(search.begin_anew)
            complete = await self._catch_up()
            found = await self._database.read(find)
        cursor = str(found[limit - 1][0]) if len(found) > limit else None
        return SearchPage([hit for _, hit in found[:limit]], cursor, complete)

    async def prompts(self, query: str, *, before: int | None = None, limit: int = 50) -> PromptPage:
        """What people have asked in all sessions, newest first; with `query` what holds it, upper or lower case.

        `before` is the cursor of the page before. `PROMPT_SLICES` are looked at, other reads in between; so a page may
        have a cursor and fewer than `limit` prompts.

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
                room -= len(encode(prompt)) + 1
                if len(found) == limit or room < 0:
                    return PromptPage(list(found.values()), str(end))
                found[prompt.text] = prompt
                end = key
            if part.end is None:
                return PromptPage(list(found.values()))
            end = part.end
        return PromptPage(list(found.values()), str(end))

    async def usage(self, *, since: str = "", by: str = "model") -> list[UsageSum]:
        """What model requests took since then; see `zotd.store.usage.sums`.

        Raises:
            StorageError: the database cannot be read.
        """
        return await self._database.read(partial(usage.sums, since=since, by=by))

    async def spent(self, since: str) -> Tokens:
        """What budgets count since then; see `zotd.store.usage.spent`.

        Raises:
            StorageError: the database cannot be read.
        """
        return await self._database.read(partial(usage.spent, since=since))

    @property
    def trouble(self) -> str | None:
        """Return why the database cannot be written at present, or None if it can as far as is known."""
        return self._database.recovery.trouble

    async def compact(self) -> tuple[int, int]:
        """Return free space to the file system; see `Database.compact`."""
        return await self._database.compact()

    async def branches(self, session: str, last: int) -> Branches:
        """The parts of a session, whose last event is `last`, and its forks.

        Raises:
            StorageError: the database cannot be read.
        """
        return await self._database.read(partial(branches.branches, session=session, last=last))

    async def _catch_up(self) -> bool:
        """Bring the index up to what is committed; False when that takes too long, or the disk is full."""
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
