"""Blast radius: what one task's failure may end."""

import logging
from collections.abc import Awaitable

log = logging.getLogger(__name__)


async def contain(name: str, work: Awaitable[object]) -> None:
    """Await `work`; its exception is logged with the traceback and goes no further. Cancellation does.

    A named boundary: one session, one connection, one extension fails without its siblings.
    """
    try:
        await work
    except Exception:
        log.exception("%s failed", name)
