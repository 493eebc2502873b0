"""What a run works with, put together before it starts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zotd.core import records
from zotd.core.ports import Model, ToolContext
from zotd.sessions.hooks import Hooks
from zotd.sessions.toolbox import Toolbox


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run works with; fixed when it starts, but for the tools."""

    model: Model
    settings: records.Settings
    toolbox: Callable[[], Toolbox]
    """Asked before each step: extensions come and go."""
    system: str
    compact_at: float
    """Part of the context window from which on the transcript is summarised first."""
    tool_context: Callable[[str, Callable[[str], None]], ToolContext]
    """From a call's id and where its progress goes."""
    notes: Sequence[str] = ()
    """What could not be used and the user should know; shown when the run starts."""
    hooks: Hooks | None = None
    """None: no extension can be asked anything."""
    opening: records.Opening | None = None
    """The call that the first step makes instead of the model."""
