"""Reads the messages of a session from before the editor opened it."""

from zotd.bridges.acp.daemon import DaemonLink
from zotd.wire import api
from zotd.wire.content import Message

REPLAY_MESSAGES = 1000
"""Number of replayed messages, the newest ones. The editor lays all of them out at once, and they are in memory until the
oldest has been read."""

PAGE_MESSAGES = 200

PAGES = 16
"""Limit of pages, which together have at most 64 MiB. Pages of long messages contain few of them."""


async def older(daemon: DaemonLink, snapshot: api.Attached) -> tuple[list[list[Message]], bool]:
    """Return pages of messages up to the snapshot, oldest first, and whether there are older ones.

    Raises ClientError.
    """
    pages, has_more = [snapshot.messages], snapshot.has_more
    while has_more and sum(map(len, pages)) < REPLAY_MESSAGES and len(pages) < PAGES:
        wanted = api.History(session=snapshot.session.id, before=_oldest(pages, snapshot.seq), limit=PAGE_MESSAGES)
        page = await daemon.ask(wanted, api.HistoryPage, command="session.history")
        # Without this check, a daemon that announces more but sends nothing would cause an endless loop.
        if not page.messages:
            break
        pages.append(page.messages)
        has_more = page.has_more
    return pages[::-1], has_more


def _oldest(pages: list[list[Message]], seq: int) -> int:
    """Return the `seq` of the oldest message read so far; without any, the one after the newest."""
    return next((page[0].seq for page in reversed(pages) if page and page[0].seq is not None), seq + 1)
