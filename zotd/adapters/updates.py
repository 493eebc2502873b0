"""What a `session/update` of another agent means for its turn and its session."""

from collections.abc import Sequence
from typing import Protocol

from zotd.adapters.turn import DrivenTurn
from zotd.wire.acp_reports import ReportedCall, ReportedChunk, ReportedPlan, ReportedUsage, UpdateKind
from zotd.wire.base import decode
from zotd.wire.plan import ACTIVE, DONE, MAX_STEPS, PENDING, STEP_CHARS, PlanStep

THOUGHT = "agent_thought_chunk"

STATES = {"pending": PENDING, "in_progress": ACTIVE, "completed": DONE}
"""The states of ACP in our words."""


class SessionNews(Protocol):
    """Hears what is not about the turn alone."""

    def costs(self, total_usd: float) -> None:
        """The agent's session has cost this much so far."""
        ...

    def planned(self, steps: Sequence[PlanStep]) -> None:
        """The agent has this plan now."""
        ...


def take_update(update: bytes, turn: DrivenTurn | None, news: SessionNews) -> None:
    """Tell the turn or the session of an update.

    Without a turn, what is said is skipped. So are kinds of updates that mean nothing here. Raises BadFrameError.
    """
    match decode(update, UpdateKind).session_update:
        case "agent_message_chunk" | "agent_thought_chunk" as kind:
            content = decode(update, ReportedChunk).content
            if turn is not None:
                turn.said(content.text or content.uri or "", thinks=kind == THOUGHT)
        case "tool_call" | "tool_call_update":
            fields = decode(update, ReportedCall)
            if turn is not None:
                turn.reported(fields)
        case "usage_update":
            cost = decode(update, ReportedUsage).cost
            if cost is not None and cost.currency == "USD":
                news.costs(cost.amount)
        case "plan":
            steps = steps_of(decode(update, ReportedPlan))
            if turn is not None:
                news.planned(steps)
        case _:
            pass


def steps_of(plan: ReportedPlan) -> list[PlanStep]:
    """Return the steps as a plan of ours can have them: not too many, none empty, none too long."""
    texts = ((" ".join(entry.content.split()), entry.status) for entry in plan.entries)
    return [PlanStep(text[:STEP_CHARS], STATES.get(state, PENDING)) for text, state in texts if text][:MAX_STEPS]
