"""What a run works with, put together before it starts."""

import time
from collections.abc import Callable, Sequence

from msgspec import Struct, field

from zotd.config.sections import CacheSection
from zotd.contributions.guards import Hooks
from zotd.contributions.toolbox import Toolbox
from zotd.core import records
from zotd.core.ports import Probe, ToolContext
from zotd.ledger.spending import Spending
from zotd.permissions.authorization import Authorization
from zotd.runs.model_ladder import ModelSource
from zotd.workspace.session_checkpoints import SessionCheckpoints

POINTS = ("input taken", "attempt on record", "opened", "begun", "replied", "calls on record", "call ended", "ended")
"""Where a run calls its `Probe`."""


class RunContext(Struct, frozen=True, kw_only=True):
    """What a run works with; fixed when it starts, but for the tools, the guards and the model."""

    models: ModelSource
    """Which model requests go to; the only part that changes during the run."""
    settings: records.Settings
    toolbox: Callable[[], Toolbox]
    """Called before each step: extensions come and go."""
    system: str
    system_digests: dict[str, str] = field(default_factory=dict)
    """Of the parts of `system` (`core.prompts.digests`)."""
    cache: CacheSection = CacheSection()
    """How long vendors keep its prompts in their caches, and whether users are told of misses."""
    told_date: str = ""
    """The day that `system` says; empty: none."""
    clock: Callable[[], float] = time.time
    """The time, in seconds since the epoch."""
    compact_at: float
    """Part of the context window from which on the transcript is summarised first."""
    compact_early_at: float = 0.0
    """Part of the context window from which on that summary is requested while the run goes on; 0: never."""
    tool_context: Callable[[str, Callable[[str], None]], ToolContext]
    """From a call's id and where its progress goes."""
    authorization: Authorization
    """Whether calls may run."""
    notes: Sequence[str] = ()
    """What could not be used and the user should know; shown when the run starts."""
    input_context: str = ""
    """What guards have the model read beside the run's input."""
    hooks: Callable[[], Hooks | None] = lambda: None
    """The guards that there are at the moment; None: no extension can be asked anything."""
    spending: Spending = field(default_factory=Spending)
    """The budgets that its requests are paid from; by default nothing is limited."""
    absent: Callable[[str], str] = lambda _: ""
    """Why there is no tool with this name, as a sentence for the model; empty: unknown."""
    checkpoints: SessionCheckpoints | None = None
    """Records the files before steps that may change them; None: they are not recorded."""
    probe: Probe | None = None
    """Called at the points of the run, `POINTS`."""
    ended: Callable[[], None] | None = None
    """Called when the run has ended, however it did; returns at once."""


class RunStart(Struct, frozen=True):
    """What a run starts with."""

    input: records.Input | None
    """None: the run goes on where the last one was cut."""
    new: bool = False
    """The input is not in the journal yet: it gets there with the first attempt, in one commit."""
    accepted: Callable[[], None] | None = None
    """Called at the first commit, before any event is shown."""
    done_shown: Callable[[], None] = lambda: None
    """Called just before `done` is shown; what the run has started may still be on its way out then."""
