"""What `session.search`, `session.tree`, `prompt.history`, `usage.report` and `daemon.metrics` answer (`docs/protocol.md`)."""

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


class PastPrompt(Frozen, frozen=True):
    """A prompt that somebody gave."""

    text: str
    """At most 64 KiB of it; images are left out."""
    session: str
    """The one that it was given to."""
    cwd: str
    """Of that session."""
    time: str


class PromptPage(Frozen, frozen=True):
    """Newest first; of equal texts in a page only the newest."""

    prompts: list[PastPrompt]
    cursor: str | None = None
    """For the next page; absent on the last one. There may be one although the page is not full: so much is looked at
    for one answer, and no more."""


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
    estimated_usd: float = 0.0
    """What budgets count besides `cost_usd`: for attempts of unknown cost, or of which not all is known."""


class BudgetState(Frozen, frozen=True, omit_defaults=False):
    """A budget, what is spent of it, and what is left; null: that is not limited."""

    scope: str
    """`day` or `session`."""
    limit_usd: float | None
    limit_tokens: int | None
    spent_usd: float
    """Estimates for attempts of unknown cost are in it, here and in `spent_tokens`."""
    spent_tokens: int
    reserved_usd: float
    """Set aside for requests under way; what they do not take comes back."""
    reserved_tokens: int
    left_usd: float | None
    left_tokens: int | None
    session: str = ""
    """Its id, when it is a session's."""
    name: str = ""
    """Of the session."""


class UsageSums(Frozen, frozen=True):
    """Most expensive first; and the budgets, whatever was asked for: that of the day, and those of sessions in memory."""

    rows: list[UsageSum]
    budgets: list[BudgetState] = []


class Compacted(Frozen, frozen=True, omit_defaults=False):
    """The size of the database, in bytes, without its write-ahead log."""

    before_bytes: int
    after_bytes: int


class Metrics(Frozen, frozen=True, omit_defaults=False):
    """What the daemon holds now, and what it has done since it started; null is what the system does not tell."""

    v: int
    uptime_s: float
    sessions: int
    """In memory; `session.list` has them all."""
    running: int
    """Sessions with a run in progress."""
    clients: int
    """Connections."""
    tasks: int
    """Of the event loop."""
    children: int | None
    """Processes that it has started and that have not ended, or have not been reaped."""
    descriptors: int | None
    """Open files, sockets and pipes."""
    rss_bytes: int | None
    """Resident memory."""
    connections: int
    """That were made, since the start."""
    evictions: int
    """Of them, those that were cut because they did not read."""
    commands: int
    """That were run; those that could not be understood are not among them."""
    events: int
    """Committed events that were handed to clients, once for each of them."""
    commits: int
    """What was written to the journal."""
    transactions: int
    """Of the database; one holds all commits that wait together."""
    synced: int
    """Of them, those that waited for the disk."""


class Branch(Frozen, frozen=True):
    """A stretch of a session that was said without a rewind in between."""

    first: int
    """`seq` of its first event: the `rewound` that it begins with, or 1."""
    last: int
    messages: int
    text: str
    """How its first message begins."""
    at: int | None = None
    """`seq` of the message that it goes on from; absent: it is where the session began."""
    time: str | None = None
    """Of its first message."""


class Fork(Frozen, frozen=True):
    """Another session with the same beginning."""

    session: str
    name: str
    at: int
    """`seq` of the last message that both have; the same in both."""


class Tree(Frozen, frozen=True):
    """How a session branches. The last of `branches` is where it goes on; the way up from there is what counts."""

    session: str
    name: str
    branches: list[Branch]
    """Oldest first."""
    forks: list[Fork]
    """Sessions that were made of this one."""
    origin: Fork | None = None
    """The session that this one was made of, while that is there."""
