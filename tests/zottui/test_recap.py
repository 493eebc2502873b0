"""What somebody is told who comes back."""

from zotd.wire.content import Message, Text, ToolCall, ToolResult
from zottui.recap import AWAY_S, recap

TIME = "2026-11-21T20:00:00.000Z"

OLD = Message("user", [Text("one")], TIME, 3)

AWAY = AWAY_S + 1


def call(key, path, *, at, is_error=False):
    """A call of `edit`, and its result."""
    return (
        Message("assistant", [ToolCall(key, "edit", {"path": path})], TIME, at),
        Message("tool", [ToolResult(key, is_error, [Text("ok")])], TIME, at + 1),
    )


def test_the_recap_counts_turns_files_and_approvals():
    news = [
        Message("user", [Text("two")], TIME, 4),
        *call("c1", "a.py", at=5),
        *call("c2", "a.py", at=7),
        *call("c3", "b.py", at=9),
        *call("c4", "c.py", at=11, is_error=True),
        Message("user", [Text("three")], TIME, 13),
    ]
    assert recap([OLD, *news], 3, AWAY, 1) == "since you left: 2 turns, 2 files changed, 1 approval waiting"


def test_where_nothing_else_is_to_be_said_messages_are_counted():
    assert recap([OLD, Message("assistant", [Text("two")], TIME, 4)], 3, AWAY, 0) == "since you left: 1 message"


def test_there_is_no_recap_after_a_short_absence_a_first_visit_or_without_news():
    new = Message("user", [Text("two")], TIME, 4)
    assert recap([OLD, new], 3, AWAY_S - 1, 1) == ""
    assert recap([OLD, new], 0, AWAY, 1) == ""
    assert recap([OLD], 3, AWAY, 0) == ""


def test_the_recap_names_pending_approvals_also_without_new_messages():
    assert recap([OLD], 3, AWAY, 2) == "since you left: 2 approvals waiting"
