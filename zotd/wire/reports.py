"""Responses of `session.search`, `session.tree`, `prompt.history`, `usage.report` and `daemon.metrics`."""

from zotd.wire.base import Frozen


class Hit(Frozen, frozen=True):
    """A message that matches the query, and where it is."""

    session: str
    name: str
    cwd: str
    seq: int
    """`seq` of the event that shows the message; `session.history` and `attach` use the same numbers."""
    time: str
    role: str
    """`user`, `assistant` or `tool`."""
    snippet: str
    """The matching words with their surroundings, on one line; `…` where it is cut."""


class SearchPage(Frozen, frozen=True):
    """A page of hits, newest first."""

    hits: list[Hit]
    cursor: str | None = None
    """For the next page; absent on the last one."""
    complete: bool = True
    """False: the newest messages are not indexed yet and may be missing; ask again in a moment."""


class PastPrompt(Frozen, frozen=True):
    """An earlier prompt, and the session that received it."""

    text: str
    """At most 64 KiB, without images."""
    session: str
    """The session that received it."""
    cwd: str
    """The working directory of that session."""
    time: str


class PromptPage(Frozen, frozen=True):
    """Newest first; of equal texts in a page only the newest."""

    prompts: list[PastPrompt]
    cursor: str | None = None
    """For the next page; absent on the last one. A page may be short even if there are more, because one request only
    searches a limited number of records."""


class AuditEntry(Frozen, frozen=True, omit_defaults=False):
    """A command that has decided something."""

    id: str
    time: str
    who: str
    """`local:ACCOUNT`, `token:NAME` or `channel:NAME:SENDER`."""
    client: str
    """What the client called itself."""
    command: str
    session: str
    """Empty: it was about no session."""
    details: dict[str, str]
    """Names and digests of what was decided, without texts and secrets."""
    outcome: str
    """`done`, `failed` or the code of the error; empty: it has not ended, or the daemon ended before."""


class AuditPage(Frozen, frozen=True):
    """Newest first."""

    entries: list[AuditEntry]
    cursor: str | None = None
    """For the next page; absent on the last one."""


class UserState(Frozen, frozen=True, omit_defaults=False):
    """A user, and what the quotas of this daemon leave them; null: no limit."""

    user: str
    sessions: int
    """Stored sessions, without subagents."""
    sessions_limit: int | None
    spent_usd: float
    """Of today, in UTC, with estimates; also by sessions that were deleted."""
    usd_per_day: float | None


class UserList(Frozen, frozen=True):
    """All users that have a session, have spent something today, or have a quota of their own; by name."""

    day: str
    """Today, in UTC (`2026-11-21`)."""
    users: list[UserState]


class UsageSum(Frozen, frozen=True, omit_defaults=False):
    """The usage of a group of model requests."""

    key: str
    """`provider/model`, a session id, a directory, a user (empty: none), or a day of the daemon's time zone (`2026-11-21`)."""
    name: str = ""
    """Name of the session."""
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost_usd: float = 0.0
    attempts: int = 0
    unknown: int = 0
    """Attempts without usage data, which no other sum includes: the provider reported none, or a crash interrupted the
    request."""
    estimated_usd: float = 0.0
    """Estimated cost that budgets count in addition to `cost_usd`, for attempts of unknown or partly unknown cost."""


class BudgetState(Frozen, frozen=True, omit_defaults=False):
    """A budget and how much of it is spent; null: no limit."""

    scope: str
    """`day` or `session`."""
    limit_usd: float | None
    limit_tokens: int | None
    spent_usd: float
    """Includes estimates for attempts of unknown cost, as does `spent_tokens`."""
    spent_tokens: int
    reserved_usd: float
    """Reserved for requests in progress; what they do not use is released."""
    reserved_tokens: int
    left_usd: float | None
    left_tokens: int | None
    session: str = ""
    """The session's id, for scope `session`."""
    name: str = ""
    """The session's name."""


class UsageSums(Frozen, frozen=True):
    """Usage, most expensive first; and the current budgets of the day and of sessions in memory, whatever was asked."""

    rows: list[UsageSum]
    budgets: list[BudgetState] = []


class Compacted(Frozen, frozen=True, omit_defaults=False):
    """Size of the database in bytes, without its write-ahead log."""

    before_bytes: int
    after_bytes: int


class MetricSample(Frozen, frozen=True):
    """One series of a family."""

    labels: dict[str, str]
    value: float
    """The value; of a histogram, how many values it has counted."""
    counts: list[int] = []
    """Only of histograms: how many values fell into each bucket, and last, how many exceed all `bounds`. Not cumulative."""
    sum: float = 0.0
    """Only of histograms: the sum of the values."""


class MetricFamily(Frozen, frozen=True):
    """Figures of the same kind, by labels."""

    name: str
    """As for Prometheus, without the suffix `_total` of counters."""
    kind: str
    """`counter`, `gauge` or `histogram`."""
    help: str
    samples: list[MetricSample] = []
    bounds: list[float] = []
    """Only of histograms: the upper bounds of the buckets, which are inclusive."""


class Metrics(Frozen, frozen=True, omit_defaults=False):
    """Current figures of the daemon, and counters since its start; null if the system does not report the value."""

    v: int
    uptime_s: float
    sessions: int
    """Sessions in memory; `session.list` returns all."""
    running: int
    """Sessions with a run in progress."""
    clients: int
    """Open connections."""
    tasks: int
    """Tasks of the event loop."""
    children: int | None
    """Child processes that are running or not yet reaped."""
    descriptors: int | None
    """Open files, sockets and pipes."""
    rss_bytes: int | None
    """Resident memory."""
    connections: int
    """Accepted connections since the start."""
    evictions: int
    """Connections cut because the client did not read."""
    commands: int
    """Executed commands, without malformed ones."""
    events: int
    """Committed events sent to clients, counted once per client."""
    commits: int
    """Commits to the journal."""
    transactions: int
    """Database transactions; one contains all commits that are waiting."""
    synced: int
    """Database transactions that were synced to disk."""
    families: list[MetricFamily] = []
    """Figures of model requests, tools, approvals and sessions, by labels."""


class Branch(Frozen, frozen=True):
    """A part of a session without a rewind in between."""

    first: int
    """`seq` of its first event: the `rewound` event it begins with, or 1."""
    last: int
    messages: int
    text: str
    """The beginning of its first message."""
    at: int | None = None
    """`seq` of the message it continues from; absent if it starts at the beginning of the session."""
    time: str | None = None
    """Time of its first message."""


class Fork(Frozen, frozen=True):
    """Another session with the same beginning."""

    session: str
    name: str
    at: int
    """`seq` of the last message that both sessions have."""


class Tree(Frozen, frozen=True):
    """The branches of a session. The last one and those that it continues are the current conversation."""

    session: str
    name: str
    branches: list[Branch]
    """Oldest first."""
    forks: list[Fork]
    """Sessions forked from this one."""
    origin: Fork | None = None
    """The session this one was forked from, if it still exists."""
