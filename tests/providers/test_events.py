"""Bytes to events."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from zotd.providers.shared.streaming import Events

ODD = "\N{LINE SEPARATOR}kept\x0b\x0c".encode()
STREAM = (
    b": a comment\n"
    b"event: one\ndata: {1}\n\n"
    b"data:{2}\r\nid: 7\r\n\r\n"
    b"\n\n"
    b"data: three\ndata: lines\ndata:\n\n"
    b"retry: 3\n\n"
    b"data: %b\n\n"
    b"data: [DONE]\n\n"
) % ODD
DATA = [b"{1}", b"{2}", b"three\nlines\n", ODD, b"[DONE]"]


def read(chunks):
    events = Events()
    return [data for chunk in chunks for data in events.feed(chunk)]


def test_events_are_read_whatever_their_line_ends_and_fields():
    assert read([STREAM]) == DATA


@settings(deadline=None)  # other tests may have the processor
@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_any_cutting_of_the_bytes_gives_the_same_events(cuts):
    edges = [0, *sorted(cuts), len(STREAM)]
    assert read(STREAM[a:b] for a, b in pairwise(edges)) == DATA


def test_an_event_is_given_out_with_the_chunk_that_completes_it():
    events = Events()
    assert events.feed(b"data: a\n") == []
    assert events.feed(b"\ndata: b\n\n") == [b"a", b"b"]


def test_the_end_gives_out_what_lacks_only_its_blank_line():
    events = Events()
    assert events.feed(b"data: last") == []
    assert events.end() == [b"last"]
    assert events.end() == []


def test_a_line_that_is_too_long_is_an_error_before_it_is_held():
    events = Events(limit=100)
    events.feed(b"data: " + b"x" * 80)
    assert events.feed(b"x" * 80) == []
    assert events.is_over


def test_an_event_of_many_lines_counts_as_a_whole():
    events = Events(limit=100)
    assert events.feed(b"data: 0123456789\n" * 20) == []
    assert events.is_over


def test_events_before_one_that_is_too_long_are_given():
    events = Events(limit=100)
    assert events.feed(b"data: good\n\ndata: " + b"x" * 200) == [b"good"]
    assert events.is_over
    assert events.feed(b"\n\ndata: behind\n\n") == []


def test_many_events_together_may_be_longer_than_the_limit():
    assert len(Events(limit=100).feed(b"data: 0123456789\n\n" * 20)) == 20
