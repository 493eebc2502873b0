"""How often partial text is stored, and how much of it."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from zotd.core.pacing import BYTES_PER_S, INTERVAL_S, MAX_BYTES, Pacing


def test_the_first_text_is_due_at_once_and_the_next_one_after_the_interval():
    pacing = Pacing()
    assert pacing.is_due(5.0)
    assert pacing.take("Hello", 5.0) == "Hello"
    assert not pacing.is_due(5.0 + INTERVAL_S / 2)
    assert pacing.is_due(5.0 + INTERVAL_S)


def test_long_text_is_stored_less_often():
    pacing = Pacing()
    pacing.take("x" * (BYTES_PER_S // 4), 0.0)
    assert not pacing.is_due(0.24)
    assert pacing.is_due(0.25)


def test_only_the_beginning_of_oversized_text_is_stored_until_the_next_step():
    pacing = Pacing()
    assert pacing.take("x" * (MAX_BYTES + 1), 0.0) == "x" * MAX_BYTES
    assert not pacing.is_due(1_000.0)
    pacing.begin()
    assert pacing.is_due(1_000.0)


def test_the_limit_does_not_split_a_character():
    assert Pacing().take("é" * MAX_BYTES, 0.0) == "é" * (MAX_BYTES // 2)
    assert Pacing().take("x" + "é" * MAX_BYTES, 0.0) == "x" + "é" * ((MAX_BYTES - 1) // 2)


def test_a_lone_surrogate_is_stored():
    assert Pacing().take("a\ud83d", 0.0) == "a?"


@given(st.lists(st.tuples(st.integers(1, 400_000), st.floats(0, 2)), max_size=60))
def test_no_stream_exceeds_the_write_rate(chunks):
    pacing, text, now, writes = Pacing(), "", 0.0, []
    for size, pause in chunks:
        text, now = text + "x" * size, now + pause
        if pacing.is_due(now):
            writes.append((now, len(pacing.take(text, now))))
    for (before, size), (after, _) in pairwise(writes):
        assert after - before >= INTERVAL_S * 0.999
        assert after - before >= size / BYTES_PER_S * 0.999
