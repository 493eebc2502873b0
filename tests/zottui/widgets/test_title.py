"""The title of the window."""

from dataclasses import replace

from msgspec import structs

from tests.zottui.widgets.states import BUSY, EVIL, LIVE, SESSION, question
from zottui.state import ViewState
from zottui.widgets.title import title


def test_it_names_the_session_and_what_it_does():
    assert title(LIVE) == "zot: fix the tests"
    assert title(BUSY) == "◐ zot: fix the tests"
    assert title(replace(BUSY, approvals=(question(),))) == "● needs you: fix the tests"


def test_without_a_name_or_a_session_it_is_the_program():
    assert title(replace(LIVE, session=structs.replace(SESSION, name=""))) == "zot"
    assert title(ViewState()) == "zot"


def test_the_title_is_marked_while_the_daemon_asks_for_attention():
    assert title(replace(LIVE, calls_you=True)) == "● zot: fix the tests"


def test_a_name_cannot_end_the_sequence_that_sets_the_title():
    assert title(replace(LIVE, session=structs.replace(SESSION, name=f"x\x07y\x1b\\{EVIL}"))).isprintable()
