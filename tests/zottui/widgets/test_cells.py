"""Text is made to fit, whatever is in it."""

from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from tests.zottui.widgets.states import EVIL
from zottui.widgets.cells import CHARS_PER_CELL, cells, clean, cut, cut_front, fit, flowing, folded, padded, row_cells

TEXTS = st.text(st.one_of(st.sampled_from("ab 日本👩\u200d\u0301é"), st.characters()), max_size=40)
WIDTHS = st.integers(min_value=-1, max_value=30)


def test_text_that_would_steer_the_terminal_is_shown_on_one_line():
    words = clean(EVIL)
    assert words.isprintable()
    assert words.startswith("a^[[2Jb^Gc d")


def test_wide_characters_count_as_two_columns():
    assert cells("日本a") == 5
    assert cut("日本語", 5) == "日本…"
    assert cut("日本語", 4) == "日…"
    assert cut_front("日本語", 5) == "…本語"
    assert padded("日本", 6) == "日本  "


def test_what_fits_is_left_alone():
    assert cut("four", 4) == "four"
    assert cut("five", 3) == "fi…"
    assert cut("four", 0) == ""


def test_a_row_is_cut_in_the_style_of_the_piece_that_is_cut():
    row = [("class:a", "one"), ("class:b", "two"), ("class:c", "three")]
    assert fit(row, 11) == row
    assert fit(row, 8) == [("class:a", "one"), ("class:b", "two"), ("class:c", "t…")]
    assert fit(row, 4) == [("class:a", "one"), ("class:b", "…")]
    assert fit(row, 0) == []


def test_long_lines_are_folded_where_a_terminal_would():
    assert list(folded("abcdef\n\ngh", 4)) == ["abcd", "ef", "", "gh"]
    assert list(folded("日本語", 4)) == ["日本", "語"]


def test_parts_flow_onto_the_next_row_unbroken():
    rows = flowing([[("", "aaa")], [("", "b"), ("", "bb")], [("", "cccc")]], 8)
    assert ["".join(text for _, text in row) for row in rows] == ["aaa  bbb", "cccc"]


@given(TEXTS, WIDTHS)
def test_no_text_gets_wider_than_asked(text, width):
    text = clean(text)
    room = max(width, 0)
    assert get_cwidth(cut(text, width)) <= room
    assert get_cwidth(cut_front(text, width)) <= room
    assert row_cells(fit([("", text), ("", text)], width)) <= room
    assert all(get_cwidth(line) <= room for line in folded(text, width))


@given(TEXTS, st.integers(min_value=2, max_value=30))
def test_folding_loses_nothing(text, width):
    text = clean(text)
    assert "".join(folded(text, width)) == text


def test_a_line_of_millions_of_characters_is_folded_once():
    assert sum(len(row) for row in folded("é" * 3_000_000, 80)) == 3_000_000


def test_a_character_with_any_number_of_accents_does_not_make_a_row_longer_than_that():
    assert max(len(row) for row in folded("a" + "\u0301" * 10_000, 10)) <= 10 * CHARS_PER_CELL
