"""Splitting bytes into lines, independent of their division, with bounded memory."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zotd.wire.framing import HEAD_BYTES, Lines, TooLong

LIMIT = HEAD_BYTES + 8
"""Small, so that the head of an oversized line is only a part of it."""


def read(*pieces, limit=LIMIT):
    lines = Lines(limit)
    found = [line for piece in pieces for line in lines.feed(piece)]
    return found + lines.end()


# --- lines ----------------------------------------------------------------------------------------------------


def test_a_line_is_returned_when_its_newline_arrives():
    lines = Lines(LIMIT)
    assert lines.feed(b"o") == []
    assert lines.feed(b"ne\ntwo\nthr") == [b"one", b"two"]
    assert lines.feed(b"") == []
    assert lines.feed(b"ee\n") == [b"three"]
    assert lines.end() == []


def test_a_last_line_without_newline_is_returned_at_the_end():
    assert read(b"one\ntw", b"o") == [b"one", b"two"]


@pytest.mark.parametrize("empty", [b"\n", b"\r\n", b"\n\n\r\n\n"])
def test_empty_lines_are_dropped(empty):
    assert read(empty, b"x\n", empty, b"y") == [b"x", b"y"]


def test_a_line_of_blanks_is_dropped():
    assert read(b" \n\t\n\r\r\n{}\n") == [b"{}"]


def test_a_carriage_return_is_kept_for_the_decoder():
    assert read(b"{}\r\n[]\r\n") == [b"{}\r", b"[]\r"]


@pytest.mark.parametrize("data", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\r", "\x00"])
def test_unicode_line_separators_are_data(data):
    line = f'{{"a":"x{data}y"}}'.encode()
    assert read(line + b"\n") == [line]


# --- oversized lines ------------------------------------------------------------------------------------------


def test_a_line_may_be_as_long_as_the_limit():
    assert read(b"x" * LIMIT + b"\n") == [b"x" * LIMIT]


def test_a_line_over_the_limit_is_reported_once():
    long = b"h" * HEAD_BYTES + b"t" * 100_000
    assert read(long + b"\nnext\n") == [TooLong(b"h" * HEAD_BYTES), b"next"]


def test_an_oversized_line_is_reported_before_it_ends():
    lines = Lines(LIMIT)
    assert lines.feed(b"x" * LIMIT) == []
    assert lines.feed(b"x") == [TooLong(b"x" * HEAD_BYTES)]
    assert lines.feed(b"x" * 10 * LIMIT) == []
    assert lines.feed(b"x\nnext\n") == [b"next"]


def test_an_endless_line_is_reported_once():
    assert read(*[b"x" * LIMIT] * 10) == [TooLong(b"x" * HEAD_BYTES)]


def test_two_oversized_lines_are_reported_separately():
    long = b"x" * (LIMIT + 1) + b"\n"
    assert read(long + long) == [TooLong(b"x" * HEAD_BYTES)] * 2


# --- division -------------------------------------------------------------------------------------------------

lines = st.binary(max_size=12) | st.integers(LIMIT - 2, 3 * LIMIT).map(lambda size: b"x" * size)
streams = st.lists(lines, max_size=8).map(b"\n".join)


@given(streams, st.data())
def test_lines_do_not_depend_on_how_the_bytes_are_divided(stream, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert read(*pieces) == expected(stream)


@given(st.lists(st.binary(max_size=20), max_size=8).map(b"\n".join))
def test_single_bytes_give_the_same_lines(stream):
    assert read(*(stream[at : at + 1] for at in range(len(stream)))) == expected(stream)


def expected(stream):
    """Reference implementation: split at LF, drop the empty lines, report the long ones."""
    found = [line for line in stream.split(b"\n") if line and not line.isspace()]
    return [line if len(line) <= LIMIT else TooLong(line[:HEAD_BYTES]) for line in found]


# --- memory ---------------------------------------------------------------------------------------------------

MEBIBYTE = 1024 * 1024


@pytest.mark.parametrize(("size", "count"), [(2, MEBIBYTE), (65_536, 64)], ids=["dripped", "flooded"])
def test_memory_is_bounded_by_the_limit_however_a_line_arrives(size, count):
    """2 MiB in pairs of bytes, and 4 MiB in chunks, of a line that never ends."""
    lines = Lines(MEBIBYTE)
    piece = bytes(size)
    tracemalloc.start()
    try:
        for _ in range(count):
            lines.feed(piece)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * MEBIBYTE  # the line, a copy of it while it grows, and some overhead
