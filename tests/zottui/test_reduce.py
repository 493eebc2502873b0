"""What a terminal makes of events, without a terminal."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from zotd.client.follow import Disconnected
from zotd.wire import api, events
from zotd.wire.content import Message, ShellRun, Text, Tokens, ToolCall, ToolResult
from zotd.wire.jobs import ENDED, RUNNING, STOPPED, JobInfo
from zotd.wire.plan import Plan, PlanStep
from zottui.blocks import Block, CodeLines, NoteLine, Prose, Rule, Thought, ToolRan, UserSaid
from zottui.effects import Alert, InsertText, Print
from zottui.reduce import reduce
from zottui.state import LinkState, ViewState

TIME = "2026-01-01T00:00:00.000Z"

SESSION = api.SessionInfo(
    id="s_1", name="", cwd="/w", provider="p", model="m", reasoning="off", mode="ask", state="idle", created=TIME,
    updated=TIME,
)  # fmt: skip


def snapshot(**fields):
    taken = api.Attached(
        mode="snapshot", session=SESSION, seq=0, epoch="e", usage=Tokens(), queue=[], approvals=[], panels=[],
        status=[], notes=[], run=None, messages=[], has_more=False,
    )  # fmt: skip
    return structs.replace(taken, **fields)


def run_with(partial):
    return api.RunInfo("r_1", 1, TIME, api.Partial(partial, []))


class Screen:
    """A state that goes on, and all that was printed."""

    def __init__(self):
        self.state = ViewState()
        self.effects = []
        self.now = 100.0

    def take(self, item, after_s=0.0):
        self.now += after_s
        self.state, effects = reduce(self.state, item, self.now)
        self.effects += effects
        return self

    def see(self, *batch, after_s=0.0):
        return self.take(list(batch), after_s)

    @property
    def printed(self):
        return [block for effect in self.effects if isinstance(effect, Print) for block in effect.blocks]

    @property
    def text(self):
        return "\n\n".join(block.source for block in self.printed if isinstance(block, Prose))


@pytest.fixture
def screen():
    return Screen().take(snapshot())


def said(text, **fields):
    return events.AssistantMessage([Text(text)], TIME, **fields)


def test_a_paragraph_is_printed_as_soon_as_the_next_one_begins(screen):
    screen.see(events.TurnStart(1), events.TextDelta("one\n\ntw"))
    assert screen.text == "one"
    screen.see(events.TextDelta("o"), said("one\n\ntwo"))
    assert screen.text == "one\n\ntwo"


def test_a_reply_that_was_not_streamed_is_printed_whole(screen):
    assert screen.see(events.TurnStart(1), said("one\n\ntwo")).text == "one\n\ntwo"


def test_a_reply_that_a_guard_replaced_is_printed_behind_a_note(screen):
    screen.see(events.TurnStart(1), events.TextDelta("a long secret\n\n"), said("no"))
    assert NoteLine("the reply was replaced by:", "warn") in screen.printed
    assert screen.printed[-1] == Prose("no")


def test_a_client_that_comes_in_the_middle_of_a_step_sees_its_beginning():
    screen = Screen().take(snapshot(run=run_with("one\n\ntwo")))
    assert screen.text == ""
    screen.see(events.ReplayComplete(seq=3), events.TextDelta(" three"), said("one\n\ntwo three"))
    assert screen.text == "one\n\ntwo three"


def test_a_client_that_comes_back_in_the_same_step_sees_only_what_it_missed(screen):
    screen.see(events.TurnStart(1, seq=1), events.TextDelta("one\n\ntwo\n\nth"))
    screen.take(Disconnected("gone", 0.1))
    assert screen.state.link is LinkState.LOST
    screen.take(snapshot(mode="resumed", seq=1, run=run_with("one\n\ntwo\n\nthree\n\nfo")))
    screen.see(events.ReplayComplete(seq=1), events.TextDelta("ur"), said("one\n\ntwo\n\nthree\n\nfour"))
    assert screen.text == "one\n\ntwo\n\nthree\n\nfour"


def test_a_client_that_comes_back_in_the_next_run_sees_the_rest_of_the_last_reply_first(screen):
    screen.see(events.TurnStart(1, seq=1), events.TextDelta("one\n\ntw"))
    screen.take(Disconnected("gone", 0.1))
    screen.take(snapshot(mode="resumed", seq=6, run=run_with("thr")))
    screen.see(
        said("one\n\ntwo", seq=2),
        events.TurnEnd("end_turn", seq=3),
        events.Done(seq=4),
        events.UserMessage([Text("more")], TIME, seq=5),
        events.TurnStart(1, seq=6),
        events.ReplayComplete(seq=6),
        events.TextDelta("ee"),
        said("three", seq=7),
    )
    assert screen.text == "one\n\ntwo\n\nthree"


def test_a_snapshot_after_a_gap_prints_only_new_messages(screen):
    screen.see(events.UserMessage([Text("a")], TIME, seq=1), events.TurnStart(1, seq=2), said("b", seq=3))
    old = [Message("user", [Text("a")], TIME, 1), Message("assistant", [Text("b")], TIME, 3)]
    new = [Message("user", [Text("c")], TIME, 9), Message("assistant", [Text("d")], TIME, 11)]
    screen.take(snapshot(seq=12, messages=[*old, *new], reason="expired"))
    assert [block for block in screen.printed if isinstance(block, UserSaid)] == [UserSaid("a"), UserSaid("c")]
    assert screen.text == "b\n\nd"
    assert Rule("meanwhile") in screen.printed


def test_the_last_turns_are_printed_at_attach_with_a_word_about_those_before():
    turns = [Message("user", [Text(str(n))], TIME, n + 1) for n in range(30)]
    session = api.SessionInfo(
        **{name: getattr(SESSION, name) for name in SESSION.__struct_fields__} | {"message_count": 500}
    )
    screen = Screen().take(snapshot(session=session, messages=turns, has_more=True))
    assert screen.printed[0] == Rule("480 earlier messages: ctrl+t or /jump shows them")
    assert [block.text for block in screen.printed[1:]] == [str(n) for n in range(10, 30)]


def test_a_prompt_of_another_client_shows_its_sender(screen):
    screen.state = replace(screen.state, own=frozenset({"i_1"}))
    screen.see(
        events.UserMessage([Text("mine")], TIME, input="i_1", sender="zot"),
        events.UserMessage([Text("theirs")], TIME, input="i_2", sender="phone"),
    )
    assert screen.printed == [UserSaid("mine"), UserSaid("theirs", sender="phone")]


def test_a_call_is_shown_while_it_runs_and_printed_with_its_result(screen):
    screen.see(
        events.TurnStart(1),
        events.ToolUseStart("t", "bash"),
        events.ToolUseArgs("t", '{"com'),
        events.ToolCallEvent("t", "bash", {"command": "ls"}),
        events.TurnEnd("tool_use"),
        events.ToolStart("t"),
        events.ToolProgress("t", "\n".join(str(n) for n in range(20))),
    )
    (call,) = screen.state.reply.calls
    assert (call.name, call.args, call.tail.splitlines()[-1]) == ("bash", {"command": "ls"}, "19")
    screen.see(events.ToolResultEvent("t", is_error=False, content=[Text("out")]), after_s=2.0)
    assert screen.state.reply.calls == ()
    assert screen.printed == [ToolRan("bash", {"command": "ls"}, "out", seconds=2.0, number=1)]


def test_what_a_call_waits_is_no_part_of_the_time_that_it_takes(screen):
    screen.see(events.TurnStart(1), events.ToolCallEvent("t", "bash", {}), events.TurnEnd("tool_use"))
    screen.see(events.ToolStart("t"), after_s=60.0)
    screen.see(events.ToolResultEvent("t", is_error=False, content=[Text("out")]), after_s=2.0)
    assert screen.printed[-1].seconds == 2.0


def test_a_call_without_a_result_stays_in_the_live_area_after_a_snapshot():
    calls = [ToolCall("t", "bash", {"command": "ls"}), ToolCall("u", "bash", {"command": "pwd"})]
    run = api.RunInfo("r", 1, TIME, api.Partial("", []), calls=[api.RunningCall("t", 40.0)])
    screen = Screen().take(snapshot(messages=[Message("assistant", [Text("look"), *calls], TIME, 2)], run=run))
    assert screen.printed == [Prose("look")]
    assert [(call.id, call.args) for call in screen.state.reply.calls] == [("t", calls[0].args), ("u", calls[1].args)]
    screen.see(events.ToolResultEvent("t", is_error=False, content=[Text("out")]), after_s=2.0)
    assert screen.printed[1:] == [ToolRan("bash", {"command": "ls"}, "out", seconds=42.0, number=1)]


def test_a_running_user_command_stays_in_the_live_area_after_a_snapshot():
    shell = ShellRun(id="s", command="make", context=True)
    screen = Screen().take(snapshot(run=api.RunInfo("s", 0, TIME, api.Partial("", []), shell)))
    assert [(call.name, call.args) for call in screen.state.reply.calls] == [("!", {"command": "make"})]


@pytest.mark.parametrize("stored", ["one\n\ntw", "one\n\ntwo", "one\n\ntwo and"])
def test_a_reply_that_a_crash_has_cut_is_printed_once(screen, stored):
    screen.see(events.TurnStart(1), events.TextDelta("one\n\ntwo"))
    screen.see(events.Interrupted("reply", f"cut: {stored}", partial=stored), events.Interrupted("run", "cut"))
    assert screen.printed[:2] == [Prose("one"), Prose(max(stored, "one\n\ntwo").removeprefix("one\n\n"))]
    assert screen.printed[2:] == [NoteLine("interrupted: cut", "warn")]


def test_stored_calls_stand_with_their_results():
    messages = [
        Message("assistant", [Text("look"), ToolCall("t", "read", {"path": "a"})], TIME, 2),
        Message("tool", [ToolResult("t", is_error=True, content=[Text("no such file")])], TIME, 3),
    ]
    screen = Screen().take(snapshot(messages=messages))
    assert screen.printed == [Prose("look"), ToolRan("read", {"path": "a"}, "no such file", is_error=True, number=1)]


def test_long_thinking_leaves_a_line_and_short_thinking_none(screen):
    screen.see(events.TurnStart(1), events.ThinkingDelta("hm"), events.TextDelta("x"))
    assert screen.printed == []
    screen.see(said("x"), events.TurnStart(2), events.ThinkingDelta("hm"))
    screen.see(events.TextDelta("y"), after_s=5.0)
    assert Thought(5.0) in screen.printed


def test_an_aborted_step_prints_what_there_is_and_says_so(screen):
    screen.see(events.TurnStart(1), events.TextDelta("half a sen"), events.TurnEnd("aborted"), events.Done())
    assert screen.printed == [Prose("half a sen"), NoteLine("interrupted")]
    assert screen.state.run is None


def test_a_question_is_open_until_the_first_answer_which_says_whose_it_was(screen):
    question = events.ApprovalRequested("a_1", "t", "bash", {}, "digest")
    assert screen.see(question).state.approvals == (question,)
    screen.see(events.ApprovalResolved("a_1", "allow", "once", "phone"))
    assert screen.state.approvals == ()
    assert screen.printed == [NoteLine("approved by phone: bash")]


def test_ones_own_approval_leaves_no_line(screen):
    screen.state = replace(screen.state, own=frozenset({"a_1"}))
    screen.see(events.ApprovalRequested("a_1", "t", "bash", {}, "d"))
    assert screen.see(events.ApprovalResolved("a_1", "allow", "once", "zot")).printed == []


def test_segments_keep_their_places(screen):
    screen.see(events.ExtStatus("x", "a", "1"), events.ExtStatus("y", "b", "2"), events.ExtStatus("x", "a", "3"))
    assert [text for _, text in screen.state.segments] == ["3", "2"]
    assert screen.see(events.ExtStatus("x", "a", "")).state.segments == ((("y", "b"), "2"),)


def test_a_panel_is_replaced_and_closed(screen):
    screen.see(events.ExtPanel("x", "p", "t", ["1"], ""), events.ExtPanel("x", "p", "t", ["2"], ""))
    assert [panel.lines for panel in screen.state.panels] == [["2"]]
    assert screen.see(events.ExtPanelClosed("x", "p")).state.panels == ()


def test_client_specific_events_become_effects(screen):
    screen.see(events.ExtInsert("words"), events.Attention("done", "it is done"))
    assert screen.effects[-2:] == [InsertText("words"), Alert("done", "it is done")]


WORDS = st.lists(st.text("ab \n*`-", max_size=6), max_size=12)


@given(WORDS, st.sets(st.integers(0, 12)))
def test_however_a_reply_comes_it_is_printed_as_if_it_had_come_at_once(pieces, losses):
    whole = "".join(pieces)
    at_once = Screen().take(snapshot()).see(events.TurnStart(1), said(whole))
    screen = Screen().take(snapshot()).see(events.TurnStart(1, seq=1))
    sent = ""
    for at, piece in enumerate(pieces):
        sent += piece
        if at not in losses:
            screen.see(events.TextDelta(piece))
            continue
        screen.take(Disconnected("gone", 0.1))
        screen.take(snapshot(mode="resumed", seq=1, run=run_with(sent)))
        screen.see(events.ReplayComplete(seq=1))
    screen.see(said(whole, seq=2))
    assert joined(screen.printed) == joined(at_once.printed)


def joined(blocks):
    """The blocks, with the pieces of each fence as one."""
    found: list[Block] = []
    for block in blocks:
        if isinstance(block, CodeLines) and not block.opens:
            begun = found[-1]
            assert isinstance(begun, CodeLines)
            found[-1] = replace(begun, lines=begun.lines + block.lines)
        else:
            found.append(replace(block, closes=False) if isinstance(block, CodeLines) else block)
    return found


# --- the plan ---------------------------------------------------------------------------------------------------------


def test_the_plan_is_that_of_the_newest_event_and_says_who_else_has_changed_it():
    first, second = Plan([PlanStep("look")], 1, "draft"), Plan([PlanStep("test")], 2, "draft", by="ann")
    screen = Screen().take(snapshot(plan=first, planning=True))
    assert (screen.state.plan, screen.state.planning) == (first, True)
    screen.see(events.PlanChanged(second, session="s_1", seq=2))
    assert (screen.state.plan, screen.state.planning) == (second, False)
    screen.see(events.PlanChanged(second, planning=True, session="s_1", seq=3))
    assert screen.printed == [NoteLine("the plan was changed by ann")]


def test_a_decision_about_a_plan_is_told_once():
    proposed = Plan([PlanStep("look")], 1, "proposed")
    screen = Screen().take(snapshot(plan=proposed, planning=True))
    screen.see(events.PlanChanged(Plan([PlanStep("look")], 2, "approved", by="ann"), session="s_1", seq=2))
    assert screen.printed == []


# --- jobs -------------------------------------------------------------------------------------------------------------


def job(**fields):
    known = {"id": "j1", "command": "npm run dev", "call": "c1", "started": TIME, "output": "", "state": RUNNING}
    return JobInfo(**(known | fields))


def test_jobs_that_run_are_those_of_the_snapshot_and_of_the_events_since():
    screen = Screen().take(snapshot(jobs=[job(took_s=30.0), job(id="j2", state=ENDED, exit=0)]))
    assert [(one.info.id, one.since) for one in screen.state.jobs] == [("j1", 70.0)]
    screen.see(events.JobChanged(job(id="j3"), session="s_1", seq=2))
    screen.see(events.JobPortsChanged("j3", [8080], session="s_1"))
    assert [(one.info.id, one.info.ports) for one in screen.state.jobs] == [("j1", []), ("j3", [8080])]
    assert screen.printed == []


def test_the_end_of_a_job_is_told_with_how_it_has_ended():
    screen = Screen().take(snapshot(jobs=[job(), job(id="j2"), job(id="j3")]))
    screen.see(events.JobChanged(job(state=ENDED, exit=0, took_s=3.0), session="s_1", seq=2))
    screen.see(events.JobChanged(job(id="j2", state=ENDED, exit=1, took_s=90.0), session="s_1", seq=3))
    screen.see(events.JobChanged(job(id="j3", state=STOPPED, reason="stopped by ann", exit=143), session="s_1", seq=4))
    assert screen.state.jobs == ()
    assert screen.printed == [
        NoteLine("job j1 (npm run dev): exit 0 after 3.0s", "success"),
        NoteLine("job j2 (npm run dev): exit 1 after 1m 30s", "warn"),
        NoteLine("job j3 (npm run dev): stopped by ann"),
    ]
