"""What a `session/update` of another agent means for its turn."""

from zotd.adapters.turn import DrivenTurn
from zotd.wire.acp_reports import ReportedCall, ReportedChunk, ReportedUsage, UpdateKind
from zotd.wire.base import decode

THOUGHT = "agent_thought_chunk"


def take_update(update: bytes, turn: DrivenTurn | None) -> float | None:
    """Tell the turn of an update; returns the cost of the agent's session in USD, if it is about that.

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
            return cost.amount if cost is not None and cost.currency == "USD" else None
        case _:
            pass
    return None
