"""Ids of spans, and the header that carries them."""

import pytest

from zotd import ids
from zotd.telemetry.ids import TraceParent, root_span_id, trace_id_of

EXAMPLE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
"""That of the specification."""


def test_a_header_is_read_and_written_unchanged():
    found = TraceParent.parse(EXAMPLE)
    assert found == TraceParent(0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331, is_sampled=True)
    assert str(found) == EXAMPLE


def test_a_header_of_a_later_version_is_read_as_far_as_it_is_known():
    found = TraceParent.parse(EXAMPLE.replace("00-", "cc-", 1) + "-what-the-future-will-be-like")
    assert str(found) == EXAMPLE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        EXAMPLE.upper(),
        EXAMPLE.replace("00-", "ff-", 1),
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        EXAMPLE[:-1],
    ],
)
def test_an_invalid_header_is_none(text):
    assert TraceParent.parse(text) is None


def test_ids_are_the_same_for_the_same_names_and_differ_for_others():
    root = TraceParent(trace_id_of("r_1"), root_span_id("r_1"), is_sampled=True)
    assert root.child("c_1") == root.child("c_1")
    assert len({root.span_id, root.child("c_1").span_id, root.child("c_2").span_id, root.child("a", "b").span_id}) == 4
    assert trace_id_of("r_1") != trace_id_of("r_2")


def test_an_id_says_when_it_was_made():
    first, key = ids.milliseconds(ids.new("r")), ids.new("r")
    assert first <= ids.milliseconds(key) <= ids.milliseconds(ids.new("r"))
    assert ids.milliseconds("nonsense") == 0
