"""What happens now, within a budget of rows."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.zottui.fake_ui import shown
from tests.zottui.widgets.states import BASH, BUSY, EVIL, LIVE, NOW, question, replying
from zottui.state import LiveCall, LiveReply, RunState
from zottui.widgets.live import MAX_ROWS, live

PROSE = "Hello, this is a fairly long paragraph that is not finished yet and goes on and on"


def waiting(*calls):
    """A reply with calls of which none runs."""
    return replace(BUSY, reply=LiveReply(calls=calls))


def running(*calls, since=99.0, text=""):
    """A reply with calls that run."""
    state = replying(text, calls=calls)
    return replace(state, run=replace(state.run, started={call.id: since for call in calls}))


def screen(state, width=80, height=12, now=NOW):
    return shown(live(state, now, width, height), width, height)


def test_nothing_is_shown_when_nothing_runs():
    assert live(LIVE, NOW, 80, 12) == []


def test_a_run_says_how_long_it_has_been_going_on():
    assert screen(BUSY) == "⠋ working… 10s"


def test_thinking_is_counted_from_where_it_began():
    assert screen(replying(thinking_since=97.0, thought="hm")) == "⠋ thinking… 3s"


def test_the_reason_of_a_retry_is_shown_instead_of_the_time():
    state = replace(BUSY, run=RunState(90.0, retry="overloaded", retry_at=103.0))
    assert screen(state) == "⟲ next try in 3s (esc stops, /retry tries now): overloaded"


WRITING = {
    20: "Hello, this is a\nfairly long\nparagraph that is\nnot finished yet and\ngoes on and on\n⠋ writing… 10s",
    40: "Hello, this is a fairly long paragraph\nthat is not finished yet and goes on and\non\n⠋ writing… 10s",
    80: "Hello, this is a fairly long paragraph that is not finished yet and goes on and\non\n⠋ writing… 10s",
    140: "Hello, this is a fairly long paragraph that is not finished yet and goes on and on\n⠋ writing… 10s",
}


@pytest.mark.parametrize("width", WRITING)
def test_the_end_of_the_pending_reply_is_shown(width):
    assert screen(replying(PROSE), width) == WRITING[width]


CALLS = {
    20: "⠋ bash  make c…  12s\n  one\n  two 日本語\n  three\n⠋ write  writing… 1…",
    40: "⠋ bash  make check SLOW=yes  12s\n  one\n  two 日本語\n  three\n⠋ write  writing… 1k characters",
}
CALLS |= dict.fromkeys((80, 140), CALLS[40])


@pytest.mark.parametrize("width", CALLS)
def test_each_call_has_a_line_and_the_last_lines_of_its_output(width):
    assert screen(replying(calls=(BASH, LiveCall("c2", "write", written=1234))), width) == CALLS[width]


def test_a_call_that_waits_for_a_decision_says_so():
    state = replace(waiting(replace(BASH, tail="")), approvals=(question(),))
    assert screen(state) == "● bash  make check SLOW=yes  needs you"


def test_a_call_that_waits_for_others_has_no_spinner_and_no_clock():
    assert screen(waiting(replace(BASH, tail=""))) == "○ bash  make check SLOW=yes  waits"


def test_a_call_of_an_idle_session_is_shown():
    assert screen(replace(waiting(replace(BASH, tail="")), run=None)) == "○ bash  make check SLOW=yes  waits"


def test_of_little_room_the_calls_get_theirs_first():
    state = replying(PROSE, calls=(BASH, LiveCall("c2", "read", {"path": "a.py"})))
    state = replace(state, run=replace(state.run, started={"c1": 88.0, "c2": 99.0}))
    assert screen(state, height=2) == "⠋ bash  make check SLOW=yes  12s\n⠋ read  a.py  1s"
    assert screen(state, height=3) == "⠋ bash  make check SLOW=yes  12s\n  three\n⠋ read  a.py  1s"


def test_of_too_many_calls_the_newest_are_shown():
    calls = tuple(LiveCall(f"c{n}", f"tool{n}") for n in range(5))
    assert screen(running(*calls), height=3) == "… 3 more calls\n⠋ tool3  1s\n⠋ tool4  1s"
    assert screen(running(*calls), height=1) == "⠋ tool4  1s"


def test_a_progress_bar_is_one_line_and_its_newest_state():
    assert screen(replying(calls=(replace(BASH, args={}, tail="10%\r50%\r90%"),))) == "⠋ bash  12s\n  90%"


def test_nothing_of_a_tool_steers_the_terminal():
    call = LiveCall("c1", EVIL, {"command": EVIL}, tail=EVIL)
    assert "^[[2J" in screen(running(call, text=EVIL))


@given(
    text=st.text(max_size=200),
    outputs=st.lists(st.text(max_size=100), max_size=6),
    width=st.integers(1, 60),
    height=st.integers(-1, 20),
)
def test_it_never_takes_more_room_than_it_is_given(text, outputs, width, height):
    calls = tuple(LiveCall(f"c{n}", "bash", {"command": tail}, tail=tail) for n, tail in enumerate(outputs))
    rows = live(running(*calls, since=1.0, text=text), NOW, width, height)
    shown(rows, width, max(min(height, MAX_ROWS), 0))
