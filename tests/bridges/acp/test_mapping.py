"""What events become for an editor, what content blocks become for the model, and how prompts end: no process, no loop."""

import asyncio
import json

import msgspec
import pytest

from zotd.bridges.acp import calls, options, prompts, questions
from zotd.bridges.acp.turns import PromptTurn
from zotd.bridges.acp.updates import Remark, Updates, merged
from zotd.client.runs import Run
from zotd.wire import acp as frames
from zotd.wire import api, events
from zotd.wire.content import Image, Message, Text, ToolCall, ToolResult
from zotd.wire.jsonrpc import RpcError
from zotd.wire.plan import Plan, PlanStep

PLACE = calls.PathResolver("/src", "/home/ann")

READ = {"path": "a.txt", "offset": 7}

DIFF = "--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n@@ -9 +9 @@\n-nine\n+9\n"


def updates():
    return Updates(PLACE)


def plain(found):
    """Updates as JSON, remarks as they are."""
    return [one if isinstance(one, Remark) else json.loads(msgspec.json.encode(one)) for one in found]


def said(text):
    return [{"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}]


TABLE = [
    (events.TextDelta(delta="hi"), said("hi")),
    (events.TextDelta(delta=""), []),
    (
        events.ThinkingDelta(delta="hm"),
        [{"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}}],
    ),
    (events.ThinkingDelta(delta=""), []),
    (events.AssistantMessage(content=[Text("whole")], time=""), said("whole")),
    (
        events.UserMessage(content=[Text("a"), Image("image/png", 1234)], time="", seq=7),
        [
            {
                "sessionUpdate": "user_message_chunk",
                "content": {"type": "text", "text": "a\n[image, image/png, 1,234 bytes]"},
                "messageId": "7",
            }
        ],
    ),
    (
        events.ToolUseStart(id="c", name="bash"),
        [{"sessionUpdate": "tool_call", "toolCallId": "c", "title": "bash", "kind": "execute", "status": "pending"}],
    ),
    (
        events.ToolCallEvent(id="c", name="read", args=READ),
        [
            {
                "sessionUpdate": "tool_call",
                "toolCallId": "c",
                "title": "read a.txt",
                "kind": "read",
                "status": "in_progress",
                "locations": [{"path": "/src/a.txt", "line": 7}],
                "rawInput": READ,
            }
        ],
    ),
    (
        events.ToolResultEvent(id="c", is_error=True, content=[Text("no")]),
        [
            {
                "sessionUpdate": "tool_call_update",
                "toolCallId": "c",
                "status": "failed",
                "content": [{"type": "content", "content": {"type": "text", "text": "no"}}],
                "rawOutput": {"is_error": True, "output": ["no"]},
            }
        ],
    ),
    (events.ToolProgress(id="of a person", text="x"), []),
    (events.CompactDone(summary="long"), said("The conversation was summarised.")),
    (events.ExtDisplay(extension="e", text="shown"), said("shown")),
    (events.Error(message="bad"), [Remark("error", "bad")]),
    (events.Blocked(code="c", message="bad"), [Remark("error", "bad")]),
    (events.Interrupted(what="run", text="cut"), [Remark("warning", "cut")]),
    (events.GuardNote(extension="g", event="e", text="no"), [Remark("warning", "g: no")]),
    (events.Notice(level="info", text="so"), [Remark("info", "so")]),
    (events.ExtNotify(extension="e", level="warn", message="so"), [Remark("warning", "e: so")]),
    (events.Retry(attempt=1, of=3, delay_s=0.25, reason="busy."), [Remark("info", "busy; trying again in 0.2 s")]),
    (
        events.ModelSwitched(provider="p", model="m", before="p/n", reason="It is overloaded."),
        [Remark("warning", "It is overloaded; going on with p/m")],
    ),
    (
        events.PlanChanged(Plan([PlanStep("a", "done"), PlanStep("b", "active"), PlanStep("c")], 1, "draft")),
        [
            {
                "sessionUpdate": "plan",
                "entries": [
                    {"content": "a", "status": "completed", "priority": "medium"},
                    {"content": "b", "status": "in_progress", "priority": "medium"},
                    {"content": "c", "status": "pending", "priority": "medium"},
                ],
            }
        ],
    ),
    (events.PlanChanged(None), [{"sessionUpdate": "plan", "entries": []}]),
    (events.TurnStart(step=1), []),
    (events.Heartbeat(), []),
    (events.Done(), []),
]


@pytest.mark.parametrize(("event", "told"), TABLE, ids=lambda one: type(one).__name__)
def test_an_event_becomes_updates(event, told):
    assert plain(updates().of(event)) == told


def test_a_committed_message_adds_only_text_that_was_not_streamed():
    told = updates()
    list(told.of(events.TurnStart(step=1)))
    list(told.of(events.TextDelta(delta="Hello")))
    assert plain(told.of(events.AssistantMessage(content=[Text("Hello there")], time=""))) == said(" there")
    assert plain(told.of(events.AssistantMessage(content=[Text("Next")], time=""))) == said("Next")


def test_a_message_rewritten_by_a_guard_is_shown_below_the_streamed_text():
    told = updates()
    list(told.of(events.TextDelta(delta="secret")))
    assert plain(told.of(events.AssistantMessage(content=[Text("[removed]")], time=""))) == said("\n\n[removed]")


def test_a_new_connection_adds_only_what_the_old_one_has_not_shown():
    told = updates()
    list(told.of(events.TurnStart(step=1)))
    list(told.of(events.TextDelta(delta="Hell")))
    assert plain(told.caught_up("Hello")) == said("o")
    assert plain(told.caught_up("Hello")) == []
    list(told.of(events.AssistantMessage(content=[Text("Hello")], time="")))
    assert plain(told.caught_up("Hello")) == []  # it is of a step that is over


def test_a_call_is_told_once_and_then_updated():
    told = updates()
    list(told.of(events.ToolUseStart(id="c", name="write")))
    args: dict[str, object] = {"path": "~/a.txt", "content": "new"}
    [call] = plain(told.of(events.ToolCallEvent(id="c", name="write", args=args)))
    diff = {"type": "diff", "path": "/home/ann/a.txt", "newText": "new"}
    assert (call["sessionUpdate"], call["content"]) == ("tool_call_update", [diff])
    [progress] = plain(told.of(events.ToolProgress(id="c", text="half")))
    assert progress["content"] == [diff, {"type": "content", "content": {"type": "text", "text": "half"}}]
    [done] = plain(told.of(events.ToolResultEvent(id="c", is_error=False, content=[Text("ok")])))
    assert [one["type"] for one in done["content"]] == ["diff", "content"]


def test_a_question_shows_the_lines_that_change():
    asked = events.ApprovalRequested(
        approval="a", tool_id="c", tool="write", args={"path": "a.txt", "content": "..."}, args_digest="d", preview=DIFF
    )
    told = updates()
    [call] = plain([told.question(asked)])
    assert [(one["oldText"], one["newText"]) for one in call["content"]] == [("same\nold", "same\nnew"), ("nine", "9")]
    resolved = events.ApprovalResolved(approval="a", decision="allow", scope="once", by="ann")
    [update] = plain(told.of(resolved))
    assert (update["toolCallId"], update["status"]) == ("c", "in_progress")
    assert [one.option_id for one in questions.options(asked)] == ["allow_once", "reject_once"]


@pytest.mark.parametrize(("decision", "status"), [("allow", "completed"), ("deny", "failed"), ("cancelled", "failed")])
@pytest.mark.parametrize(
    ("tool", "about", "title", "kind"),
    [
        ("network", {"host": "example.org", "port": 443}, "network example.org", "fetch"),
        ("files", {"paths": ["/srv/a", "/srv/b"]}, "files /srv/a, /srv/b", "edit"),
    ],
)
def test_a_question_about_what_a_command_wants_leaves_its_call_as_it_is(decision, status, tool, about, title, kind):
    told = updates()
    list(told.of(events.ToolCallEvent(id="c", name="bash", args={"command": "make"})))
    about = {**about, "command": "make"}
    asked = events.ApprovalRequested(
        approval="a", tool_id="c", tool=tool, args=about, args_digest="d", preview="a command wants something"
    )
    [question] = plain([told.question(asked)])
    assert (question["sessionUpdate"], question["toolCallId"]) == ("tool_call", "a")
    assert (question["title"], question["kind"]) == (title, kind)
    [update] = plain(told.of(events.ApprovalResolved(approval="a", decision=decision, scope="once", by="ann")))
    assert (update["toolCallId"], update["status"]) == ("a", status)


def test_a_long_wait_for_the_model_is_told_to_every_editor_once():
    told = updates()

    def severity(reason, delay_s):
        [remark] = told.of(events.Retry(attempt=1, of=0, delay_s=delay_s, reason=reason))
        return remark.severity

    assert [severity("overloaded", delay_s) for delay_s in (0.5, 4, 9, 17, 30)] == ["info"] * 2 + ["warning"] + [
        "info"
    ] * 2
    assert severity("no connection", 30) == "warning"
    list(told.of(events.AssistantMessage(content=[Text("Here")], time="")))
    assert severity("no connection", 30) == "warning"


def test_history_is_told_message_by_message():
    told = updates()
    history = [
        Message("user", [Text("go")], "", 1),
        Message("assistant", [Text("Looking."), ToolCall("c", "grep", {"pattern": "x"})], "", 2),
        Message("tool", [ToolResult("c", is_error=False, content=[Image("image/png", 5)])], "", 3),
    ]
    found = plain(update for message in history for update in told.replay(message))
    kinds = [one["sessionUpdate"] for one in found]
    assert kinds == ["user_message_chunk", "agent_message_chunk", "tool_call", "tool_call_update"]
    assert (found[2]["title"], found[2]["kind"]) == ("grep x", "search")
    assert found[3]["rawOutput"]["output"] == ["[image, image/png, 5 bytes]"]


def test_neighbours_that_continue_each_other_are_one():
    batch: list[events.AnyEvent] = [
        events.TextDelta(delta="a"),
        events.TextDelta(delta="b"),
        events.ToolProgress(id="1", text="x"),
        events.ToolProgress(id="2", text="y"),
        events.ToolProgress(id="2", text="z"),
    ]
    assert list(merged(batch)) == [
        events.TextDelta(delta="ab"),
        events.ToolProgress(id="1", text="x"),
        events.ToolProgress(id="2", text="yz"),
    ]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("read", "read"), ("edit", "edit"), ("bash", "execute"), ("glob", "search"), ("skill", "read")),
        *(("srv__fetch_page", "fetch"), ("deleteFile", "delete"), ("git-move", "move"), ("think", "think")),
        *(("weather", "other"), ("threadpool", "other"), ("", "other")),
    ],
)
def test_a_tool_has_a_kind(name, kind):
    assert calls.kind_of(name) == kind


@pytest.mark.parametrize(
    "args", [{}, {"path": 3}, {"path": ""}, {"path": "a", "edits": "no"}, {"path": "a", "edits": [1, {"oldText": "x"}]}]
)
def test_arguments_that_make_no_sense_have_no_diff(args):
    assert calls.diffs_of("edit", args, PLACE) == []
    assert calls.diffs_of("write", args, PLACE) == []
    assert isinstance(calls.title_of("edit", args), str)


def test_long_output_is_cut_and_says_so():
    [told] = plain(calls.said([Text("x" * (calls.OUTPUT_CHARS + 10))]))
    assert told["content"]["text"].endswith("\n[10 more characters are not shown]")
    [newest] = plain(calls.output("old" + "x" * calls.OUTPUT_CHARS))
    assert newest["content"]["text"] == "x" * calls.OUTPUT_CHARS


def test_an_option_that_is_not_there_is_refused():
    assert options.change_of("s", "model", "openrouter/a/b") == api.SetModel(
        session="s", model="a/b", provider="openrouter"
    )
    for option, value in (("model", "gpt"), ("reasoning", "very"), ("colour", "red")):
        with pytest.raises(RpcError):
            options.change_of("s", option, value)


@pytest.mark.parametrize(
    ("blocks", "entered"),
    [
        ([frames.TextBlock("/todo add milk")], ("todo", "add milk")),
        ([frames.TextBlock("//todo")], None),
        ([frames.TextBlock("/usr/bin is full")], None),
        ([frames.TextBlock("/todo"), frames.ImageBlock("eA==", "image/png")], None),
    ],
)
def test_a_line_with_a_slash_is_a_command(blocks, entered):
    assert prompts.entered(blocks).command == entered


def test_what_a_model_cannot_read_is_refused():
    sound = frames.AudioBlock()
    binary = frames.ResourceBlock(frames.Contents("file:///a.zip", blob="eA==", mime_type="application/zip"))
    for block in (sound, binary, frames.TextBlock(" \n")):
        with pytest.raises(RpcError):
            prompts.entered([block])
    picture = frames.ResourceBlock(frames.Contents("file:///a.png", blob="eA==", mime_type="image/png"))
    assert prompts.entered([picture]).images == [api.PromptImage("image/png", "eA==")]


async def outcome(*told, cancelled=False):
    turn = PromptTurn()
    turn.accepted(Run("i", None))
    for event in (events.UserMessage(content=[], time="", input="i", run="r"), *told, events.Done(run="r")):
        turn.on(event)
        turn.is_cancelled = cancelled
    async with asyncio.timeout(1):
        return await turn.outcome


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ([events.TurnEnd(stop="end_turn")], "end_turn"),
        ([events.TurnEnd(stop="length")], "max_tokens"),
        ([events.TurnEnd(stop="aborted")], "cancelled"),
        (
            [events.TurnEnd(stop="tool_use"), events.Error(message="the step limit of 3 is reached; …")],
            "max_turn_requests",
        ),
        ([events.TurnEnd(stop="error"), events.Error(message="gpt declined to answer; rephrase …")], "refusal"),
    ],
)
async def test_a_run_ends_for_a_reason(told, reason):
    assert await outcome(*told) == reason


async def test_a_run_that_failed_or_was_cut_is_an_error_unless_it_was_cancelled():
    failed = events.Error(message="no network")
    with pytest.raises(RpcError, match="no network"):
        await outcome(events.TurnEnd(stop="error"), failed)
    with pytest.raises(RpcError, match="was cut"):
        await outcome(events.Interrupted(what="run", text="it was cut"))
    assert await outcome(events.TurnEnd(stop="error"), failed, cancelled=True) == "cancelled"
    assert await outcome(events.TurnEnd(stop="end_turn"), cancelled=True) == "cancelled"


async def test_events_of_other_runs_do_not_end_a_prompt():
    turn = PromptTurn()
    turn.accepted(Run("i", None))
    turn.on(events.Done(run="another"))
    assert not turn.outcome.done()
    turn.on(events.QueueChanged(items=[], held=True))  # from before it was accepted
    assert not turn.outcome.done()
    waiting = events.QueueItem("i", "go on", "ann", "queue")
    turn.on(events.QueueChanged(items=[waiting], held=False))
    turn.on(events.QueueChanged(items=[], held=True))
    assert await turn.outcome == "cancelled"  # another client has withdrawn it


async def test_a_prompt_that_a_failed_run_leaves_in_the_queue_is_answered_with_the_way_out():
    turn = PromptTurn()
    turn.accepted(Run("i", None))
    waiting = events.QueueItem("i", "go on", "ann", "queue")
    turn.on(events.QueueChanged(items=[waiting], held=False))
    turn.on(events.QueueChanged(items=[waiting], held=True))
    with pytest.raises(RpcError, match="waits in the session's queue; `/continue`"):
        await turn.outcome
