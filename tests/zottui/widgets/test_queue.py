"""What waits to be said."""

from dataclasses import replace

import pytest

from tests.zottui.fake_ui import shown
from tests.zottui.widgets.states import BUSY, EVIL, LIVE, queued
from zottui.widgets.queue import queue


def screen(state, width=80, height=4):
    return shown(queue(state, width, height), width, height)


def test_nothing_is_shown_of_an_empty_queue():
    assert queue(LIVE, 80, 4) == []


WAITING = {
    20: "queued  then run th…\nqueued  phone:  and…",
    40: "queued  then run the linter 日本\nqueued  phone:  and the docs",
}
WAITING |= dict.fromkeys((80, 140), WAITING[40])


@pytest.mark.parametrize("width", WAITING)
def test_inputs_of_others_have_their_sender(width):
    own, other = queued("then run the linter 日本", "and the docs")
    state = replace(BUSY, queue=(own, replace_sender(other, "phone")), own=frozenset({own.id}))
    assert screen(state, width) == WAITING[width]


def replace_sender(item, sender):
    return type(item)(item.id, item.text, sender, item.mode)


def test_steered_and_queued_inputs_have_different_labels():
    items = queued("stop that", mode="steer", sender="")
    assert screen(replace(BUSY, queue=items)) == "steer   stop that"


def test_a_held_queue_says_how_to_go_on():
    state = replace(LIVE, queue=queued("next", sender=""), held=True)
    assert screen(state) == "paused  /continue resumes\nqueued  next"


def test_of_many_inputs_the_first_are_shown():
    state = replace(BUSY, queue=queued(*"abcdef", sender=""))
    assert screen(state) == "queued  a\nqueued  b\nqueued  c\n… 3 more"
    assert screen(state, height=1) == "… 6 more"
    assert screen(state, height=0) == ""


def test_an_input_of_many_lines_is_one_row_and_steers_nothing():
    state = replace(BUSY, queue=queued("one\ntwo" + EVIL, sender=EVIL))
    assert "one two" in screen(state)
