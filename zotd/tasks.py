"""Blast radius: what one task's failure may end."""

import asyncio
import logging
from collections.abc import Awaitable, Coroutine

log = logging.getLogger(__name__)


async def contain(name: str, work: Awaitable[object]) -> None:
    """Await `work`; its exception is logged with the traceback and goes no further. Cancellation does.

    A named boundary: one session, one connection, one extension fails without its siblings.
    """
    try:
        await work
    except Exception:
        log.exception("%s failed", name)


def contained(group: asyncio.TaskGroup, name: str, work: Coroutine[object, object, object]) -> asyncio.Task[None]:
    """Start `contain(name, work)` in `group`; the task may be cancelled at any moment."""
    task = group.create_task(contain(name, work), name=name)
    # A task that is cancelled before its first step never gets to `work`, which Python would complain about.
    task.add_done_callback(lambda _: work.close())
    return task


def ignore_failure(future: asyncio.Future[None]) -> None:
    """Have nobody wait for this future: asyncio does not log its exception, because something else tells of the failure."""
    future.add_done_callback(_retrieve)


def _retrieve(future: asyncio.Future[None]) -> None:
    if not future.cancelled():
        future.exception()
