"""Commands that help users to write a prompt: completion, earlier prompts, the state of the workspace."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import place_of, session_of, wait_for_room
from zotd.sessions.completion import Completer
from zotd.store.archive import Archive
from zotd.wire import api, reports
from zotd.wire.errors import Code, CommandError
from zotd.workspace.git import checkout

QUERY_CHARS = 1_000
"""Longest query for earlier prompts."""

MAX_PROMPTS = 200
"""Maximum number of prompts in one response."""

LOOK_S = 2.0
"""Timeout for looking at a directory, including the wait for earlier lookups: a dead network mount never answers."""

T = TypeVar("T")


async def complete(completer: Completer, call: Invocation, params: api.Complete) -> api.Completions:
    """Return completions. A client that may not send prompts gets none from outside of the workspace."""
    session = await session_of(call, params.session)
    return await completer.complete(session, params.kind, params.text, may_leave=call.door.role >= api.Role.SUBMIT)


async def prompts(archive: Archive, call: Invocation, params: api.PromptHistory) -> reports.PromptPage:
    """Return a page of earlier prompts, newest first."""
    if len(params.query) > QUERY_CHARS:
        raise CommandError(Code.BAD_REQUEST, f"a query has at most {QUERY_CHARS} characters")
    before = place_of(params.cursor, "prompt.history")
    limit = max(1, min(params.limit, MAX_PROMPTS))
    page = await archive.prompts(params.query, before=before, limit=limit)
    await wait_for_room(call)
    return page


async def workspace(looks: asyncio.Semaphore, call: Invocation, params: api.OfSession) -> api.WorkspaceInfo:
    """Return the working directory of the session and its git branch."""
    cwd = (await session_of(call, params.session)).ledger.row.cwd
    found = await look(looks, partial(checkout, cwd))
    return api.WorkspaceInfo(cwd, found.name, found.is_detached) if found else api.WorkspaceInfo(cwd)


async def look(room: asyncio.Semaphore, work: Callable[[], T]) -> T | None:
    """Run `work` in a thread; None on timeout. A thread that hangs keeps its slot in `room`."""
    try:
        async with asyncio.timeout(LOOK_S):
            await room.acquire()
            looking = asyncio.get_running_loop().run_in_executor(None, work)
            looking.add_done_callback(lambda _: room.release())
            # Not cancelled on timeout, because threads cannot be; the slot is released when the thread returns.
            return await asyncio.shield(looking)
    except TimeoutError:
        return None
