"""What guards have the model read beside the results of tool calls."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from zotd.contributions.guards import Hooks
from zotd.core.ports import ToolOutcome
from zotd.exthost.guards import GuardedCall, GuardRemark
from zotd.wire.content import Text


class ResultGuard(Struct, frozen=True):
    """Asks the guards about the results of one run; made when there is a guard."""

    hooks: Hooks
    noted: Callable[[Sequence[GuardRemark]], None]
    """Told what a reader of the transcript should know."""

    async def reviewed(self, key: str, tool: str, args: Mapping[str, object], outcome: ToolOutcome) -> ToolOutcome:
        """Return the outcome with what guards add to it. Safe to cancel: the outcome is then as it was."""
        verdict = await self.hooks.result(GuardedCall(key, tool), args, outcome)
        if verdict.notes:
            self.noted(verdict.notes)
        added = verdict.reason if verdict.is_blocked else verdict.value
        return replace(outcome, content=[*outcome.content, Text(added)]) if added else outcome
