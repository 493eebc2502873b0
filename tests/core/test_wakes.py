"""Wakes: what the model reads when it is woken, and how often it may wake itself."""

import pytest

from zotd.core.wakes import WakeOrder, chained, prompt_of
from zotd.wire.content import Message, Text

TIME = "2026-11-27T09:00:00.000Z"

WAKE = prompt_of(WakeOrder(600, "look at the CI"))


def messages(*texts):
    """User messages with these texts, each with an answer."""
    roles = [(role, text) for text in texts for role, text in (("user", text), ("assistant", "ok"))]
    return [Message(role, [Text(text)], TIME) for role, text in roles]


def test_the_note_comes_back_with_the_time_that_has_passed():
    assert WAKE == "You are woken, as you wanted to be 10m after this note: look at the CI"


@pytest.mark.parametrize(
    ("texts", "count"),
    [([], 0), (["go"], 0), (["go", WAKE], 1), ([WAKE, "go", WAKE, WAKE], 2), ([WAKE, "go"], 0)],
)
def test_wakes_are_counted_since_the_last_word_of_somebody_else(texts, count):
    assert chained(messages(*texts)) == count


def test_a_prompt_without_text_is_one_of_somebody_else():
    assert chained([*messages(WAKE), Message("user", [], TIME)]) == 0
