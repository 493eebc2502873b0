"""What was said in a session before an editor has opened it."""

from zotd.bridges.acp.daemon import DaemonLink
from zotd.wire import api
from zotd.wire.content import Message

REPLAY_MESSAGES = 1000
"""Of a session that is loaded, the newest; an editor lays all of them out at once. They are held until the oldest
is known."""

PAGE_MESSAGES = 200

PAGES = 16
"""At most, 64 MiB: pages of long messages hold few of them."""


async def older(daemon: DaemonLink, snapshot: api.Attached) -> tuple[list[list[Message]], bool]:
    """Pages of messages up to the snapshot, the oldest first; and whether there are older ones.

    Raises `ClientError`.
    """
    pages, has_more = [snapshot.messages], snapshot.has_more
    while has_more and sum(map(len, pages)) < REPLAY_MESSAGES and len(pages) < PAGES:
        wanted = api.History(session=snapshot.session.id, before=_oldest(pages, snapshot.seq), limit=PAGE_MESSAGES)
        page = await daemon.ask(wanted, api.HistoryPage, command="session.history")
        if not page.messages:
            break
        pages.append(page.messages)
        has_more = page.has_more
    return pages[::-1], has_more


def _oldest(pages: list[list[Message]], seq: int) -> int:
    """The `seq` of the oldest message so far; of the one behind the newest, when there is none."""
    return next((page[0].seq for page in reversed(pages) if page and page[0].seq is not None), seq + 1)
