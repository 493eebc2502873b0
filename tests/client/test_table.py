"""Columns are aligned on a terminal, whatever the cells contain."""

import pytest
from wcwidth import wcswidth

from zotd.client.columns import clipped, fitting
from zotd.client.table import table

NAMES = ["plain", "漢字テスト", "👩‍👩‍👧 family", "e\u0301te\u0301", "한국어", "❤️", ""]
"""Cells of one column: ASCII, wide, an emoji of several characters, combining marks, wide, a variation selector, empty."""


def starts(lines, word):
    """Return the terminal column at which `word` begins in each line."""
    return {wcswidth(line.split(word)[0]) for line in lines}


def test_columns_are_aligned_after_wide_characters():
    assert len(starts(table([[name, "idle"] for name in NAMES]), "idle")) == 1


def test_right_aligned_columns_end_at_the_same_place():
    lines = table([[name, "end"] for name in NAMES], right={0})
    assert {wcswidth(line) for line in lines} == {wcswidth(lines[0])}


def test_colours_do_not_affect_the_width():
    lines = table([["漢字", "x"], ["a", "x"]], paint=lambda column, text: text if column else f"\x1b[1m{text}\x1b[0m")
    assert lines == ["\x1b[1m漢字\x1b[0m  x", "\x1b[1ma\x1b[0m     x"]


def test_no_line_ends_in_spaces():
    assert table([["a", "long"], ["b", ""]]) == ["a  long", "b"]


def test_a_cell_cannot_contain_newlines_or_escape_sequences():
    assert table([["a\nb\x1b[2J", "c"]]) == ["a b^[[2J  c"]


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("漢字テスト", 10, "漢字テスト"),
        ("漢字テスト", 9, "漢字テス…"),
        ("漢字テスト", 8, "漢字テ…"),
        ("👩‍👩‍👧👧", 3, "👩‍👩‍👧…"),
        ("漢", 0, ""),
    ],
)
def test_clipping_counts_columns_and_keeps_characters_whole(text, width, shown):
    assert clipped(text, width) == shown


def test_clipping_does_not_split_a_wide_character():
    assert (fitting("a漢", 2), fitting("a漢", 3)) == ("a", "a漢")
