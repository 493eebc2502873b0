"""What `session.search` and `usage.report` answer."""

from zotd.wire.base import Frozen


class Hit(Frozen, frozen=True):
    """A message with the words that were looked for."""

    session: str
    name: str
    cwd: str
    seq: int
    """Of the event that shows it: what `session.history` and `attach` count by."""
    time: str
    role: str
    """`user`, `assistant` or `tool`."""
    snippet: str
    """The words and what stands around them, on one line; `…` where it is cut."""


class SearchPage(Frozen, frozen=True):
    """Newest first."""

    hits: list[Hit]
    cursor: str | None = None
    """For the next page; absent on the last one."""
    complete: bool = True
    """False: the newest messages are not all in the index yet, and may be missing; ask again in a moment."""


class UsageSum(Frozen, frozen=True, omit_defaults=False):
    """What some model requests took together."""

    key: str
    """`provider/model`, the id of a session, or a directory."""
    name: str = ""
    """Of the session, when it is one."""
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost_usd: float = 0.0
    attempts: int = 0
    unknown: int = 0
    """Attempts without figures, which are in no other sum: the provider gave none, or a crash cut the request."""


class UsageSums(Frozen, frozen=True):
    """Most expensive first."""

    rows: list[UsageSum]
