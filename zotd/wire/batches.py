"""Commands about batches: prompts that any daemon of a fleet runs, each in a session of its own (`docs/batches.md`)."""

import msgspec

from zotd.wire.base import Frozen


class BatchPromptOrder(Frozen, frozen=True, kw_only=True):
    """A prompt of a batch."""

    number: int
    """Names it within its batch."""
    message: str
    """The prompt."""
    cwd: str
    """Directory of its session, on the machine of the daemon that runs it."""
    labels: list[str] = msgspec.field(default_factory=list)
    """Only daemons that have all of these run it (`fleet.labels`)."""
    provider: str | None = None
    model: str | None = None
    mode: str | None = None
    """Approval mode; absent: as configured at the daemon that runs it."""
    limit_usd: float | None = None
    """Budget of its session, in USD."""
    limit_s: float | None = None
    """An attempt is aborted after so many seconds."""
    retries: int = 0
    """How often it is run again, in a new session, after it has failed."""


class BatchSubmit(Frozen, frozen=True, kw_only=True):
    """Prompts to be run. Repeating the command adds nothing, so it can be repeated until it is answered."""

    batch: str
    """Id that the client has chosen; a batch that is there gets more prompts."""
    prompts: list[BatchPromptOrder]
    priority: int = 0
    """Of a new batch: prompts of batches with a higher one come first."""
    request_id: str | None = None


class BatchSubmitted(Frozen, frozen=True):
    """The prompts are stored."""

    added: int
    known: int = 0
    """How many of them were there before."""


class BatchResultQuery(Frozen, frozen=True, kw_only=True):
    """Results of a batch, in the order in which they came."""

    batch: str
    after: int = 0
    """`place` of the last result that the client has."""
    wait_s: float = 0.0
    """If there is none yet, the answer waits for one, at most so many seconds and at most 30."""


class BatchResult(Frozen, frozen=True, kw_only=True):
    """What has come of a prompt. There is one for each, and it never changes."""

    place: int
    """Counts from 1 in each batch, without gaps, in the order in which results came."""
    number: int
    state: str
    """`done`, `failed`, `cancelled`, or `unknown`: a crash has cut a call whose outcome is not known."""
    text: str = ""
    """The last reply."""
    error: str = ""
    session: str = ""
    """Session of the last attempt; empty: there was none."""
    attempts: int = 0
    cost_usd: float = 0.0
    """Of the last attempt, with its subagents."""
    took_s: float = 0.0
    """Seconds from the beginning of the last attempt to its end."""


class BatchResults(Frozen, frozen=True):
    """Some results; ask again with the last `place` until `left` is 0 and none are returned."""

    results: list[BatchResult]
    left: int
    """How many prompts of the batch have no result yet."""
    running: int = 0
    """How many of these run."""
    ended: int = 0
    """How many results there were, at least."""


class BatchName(Frozen, frozen=True, kw_only=True):
    """A batch."""

    batch: str
    request_id: str | None = None


class BatchCancelled(Frozen, frozen=True):
    """Prompts that run are being aborted, and their results come as those of others."""

    waiting: int
    """How many prompts had not been run, and will not be."""


class BatchInfo(Frozen, frozen=True, omit_defaults=False):
    """A batch in numbers."""

    id: str
    submitter: str
    priority: int
    made: str
    cancelled: bool
    waiting: int
    running: int
    ended: int


class BatchListQuery(Frozen, frozen=True, kw_only=True):
    """Which batches to list."""

    active: bool = False
    """Only those that have prompts to run."""
    limit: int = 1000
    """At most so many, from 1 to 1000."""


class BatchList(Frozen, frozen=True):
    """Batches, newest first. Those without prompts to run are deleted 30 days after they were made."""

    batches: list[BatchInfo]
    more: bool = False
    """There are older ones."""
