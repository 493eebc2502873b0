"""One line that says where one is."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from tests.zottui.fake_ui import shown
from tests.zottui.widgets.states import EVIL, LIVE, SESSION, clients, question, spent
from zotd.client.options import MODES
from zottui.state import LinkState, ViewState
from zottui.widgets.status import status

FULL = replace(
    LIVE,
    context=84_000,
    window=200_000,
    branch="main",
    clients=clients(2),
    segments=((("weather", "now"), "sunny 21°"),),
    **spent(0.42, 3.1),
)


def line(state, width=140, **options):
    return shown([status(state, width, **({"home": "/home/me"} | options))], width - 1, 1)


LINES = {
    20: "yolo · 42% 84k/200k",
    40: "openai/gpt-5 · yolo · 42% 84k/200k",
    80: "fix the tests · openai/gpt-5 · yolo · main · 42% 84k/200k · $0.42 · 2 clients",
    140: "fix the tests · openai/gpt-5 · yolo · ~/src/p · main · 42% 84k/200k · $0.42 · $3.10 today · 2 clients · sunny 21°",
}


@pytest.mark.parametrize("width", LINES)
def test_of_little_room_the_most_important_gets_its_first(width):
    assert line(FULL, width) == LINES[width]


def test_before_there_is_a_session_it_says_that_it_connects():
    assert line(ViewState()) == "connecting…"


def test_a_lost_connection_comes_before_everything_else():
    assert line(replace(FULL, link=LinkState.LOST), 20) == "reconnecting…"


def test_the_window_of_a_new_session_is_empty():
    assert line(replace(LIVE, window=200_000)) == "fix the tests · openai/gpt-5 · yolo · ~/src/p · 0%"


def test_without_a_known_window_there_are_only_figures():
    assert line(replace(LIVE, context=84_000)).endswith("~/src/p · 84k")


@pytest.mark.parametrize(
    ("context", "role"),
    [(140_000, "status"), (141_000, "warning"), (170_000, "warning"), (171_000, "error")],
)
def test_a_window_that_fills_up_changes_its_colour(context, role):
    row = status(replace(LIVE, context=context, window=200_000), 140, home="")
    assert [look for look, text in row if "%" in text] == [f"class:{role}"]


def test_decisions_that_wait_are_counted():
    assert "needs you ·" in line(replace(LIVE, approvals=(question(),)))
    assert "2 need you" in line(replace(LIVE, approvals=(question(), question("a_2"))))


def test_the_usual_mode_makes_room_for_the_directory():
    session = structs.replace(SESSION, mode="workspace")
    words = line(replace(FULL, session=session), 80)
    assert words == "fix the tests · openai/gpt-5 · ~/src/p · 42% 84k/200k · $0.42 · 2 clients"


def test_the_mode_yolo_is_shown_as_a_warning():
    modes = {mode: status(replace(LIVE, session=structs.replace(SESSION, mode=mode)), 140, home="") for mode in MODES}
    shown_as = {mode: [look for look, text in row if text == mode] for mode, row in modes.items()}
    assert shown_as == {mode: ["class:warning" if mode == "yolo" else "class:status"] for mode in MODES}


def test_the_mode_of_the_editor_and_that_of_the_session_are_shown():
    session = structs.replace(SESSION, mode="read-only")
    words = line(replace(LIVE, session=session), vi_mode="NORMAL")
    assert words == "-- NORMAL -- · fix the tests · openai/gpt-5 · read-only · ~/src/p"


@pytest.mark.parametrize(
    ("cwd", "words"),
    [
        ("/home/me", "~"),
        ("/home/melissa", "/home/melissa"),
        ("/very/long/path/that/has/many/parts/project", "…path/that/has/many/parts/project"[-32:]),
    ],
)
def test_directories_are_short(cwd, words):
    state = replace(LIVE, session=structs.replace(SESSION, cwd=cwd))
    assert line(state).endswith(f"· {words}" if len(words) < 32 else f"…{words[1:]}")


def test_nothing_of_others_steers_the_terminal():
    session = structs.replace(SESSION, name=EVIL, model=EVIL, cwd=EVIL)
    assert "^[[2J" in line(replace(FULL, session=session, branch=EVIL, segments=((("x", "y"), EVIL),)))


@given(st.text(max_size=60), st.integers(2, 200))
def test_it_is_always_narrower_than_the_terminal(name, width):
    line(replace(FULL, session=structs.replace(SESSION, name=name, model=name)), width)
