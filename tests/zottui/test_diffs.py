"""Changes of files."""

import difflib

from hypothesis import given
from hypothesis import strategies as st

from zottui.diffs import (
    ADDED,
    COMPARED_LINES,
    GAP,
    KEPT,
    REMOVED,
    DiffLine,
    between,
    count,
    diff_lines,
    focused,
    unified,
)
from zottui.theme import DEFAULT, PLAIN

texts = st.lists(st.sampled_from(["a", "b", "", "-- c", "++ d", "@@ -1 +1 @@", "\\ e"]), max_size=12)


def sides(changes: list[DiffLine]) -> tuple[list[str], list[str]]:
    """What was there, and what is."""
    return (
        [change.text for change in changes if change.sign in {KEPT, REMOVED}],
        [change.text for change in changes if change.sign in {KEPT, ADDED}],
    )


def test_a_unified_diff_is_read_with_its_numbers():
    changes = unified("Edited x\n\n--- x\n+++ x\n@@ -3,2 +3,3 @@\n a\n-b\n+c\n+d\n@@ -9 +10 @@\n-e\n+f")

    assert changes == [
        DiffLine(KEPT, "a", 3),
        DiffLine(REMOVED, "b", 4),
        DiffLine(ADDED, "c", 4),
        DiffLine(ADDED, "d", 5),
        DiffLine(GAP),
        DiffLine(REMOVED, "e", 9),
        DiffLine(ADDED, "f", 10),
    ]
    assert count(changes) == (3, 2)


def test_a_missing_newline_is_no_change_and_a_cut_diff_says_so():
    changes = unified("@@ -1,9 +1,9 @@\n-a\n\\ No newline at end of file\n+b\n[the rest is left out]\n+c")

    assert changes == [DiffLine(REMOVED, "a", 1), DiffLine(ADDED, "b", 1), DiffLine(GAP, "[the rest is left out]")]


def test_text_without_a_diff_has_no_changes():
    assert unified("--- x\n+++ y\n-a\n+b") == []


@given(texts, texts)
def test_what_difflib_writes_is_read_back(old, new):
    lines = list(difflib.unified_diff(old, new, lineterm="", n=len(old) + len(new)))

    assert unified("\n".join(lines)) == [] if old == new else sides(unified("\n".join(lines))) == (old, new)


@given(texts, texts)
def test_changes_lead_from_one_text_to_the_other(old, new):
    changes = [change for change in between("\n".join(old), "\n".join(new)) if change.sign in {ADDED, REMOVED}]
    added, removed = count(changes)

    assert added - removed == len(new or [""]) - len(old or [""])
    assert bool(changes) == ((old or [""]) != (new or [""]))


def test_long_texts_are_not_compared():
    lines = "\n".join(map(str, range(COMPARED_LINES + 1)))

    assert count(between(lines, lines)) == (COMPARED_LINES + 1, COMPARED_LINES + 1)


def test_focused_drops_lines_far_from_a_change():
    changes = between("a\nb\nc\nX\nd\ne\nf\ng\nY", "a\nb\nc\nx\nd\ne\nf\ng\ny")

    assert [change.sign + change.text for change in focused(changes)] == [
        *(" c", "-X", "+x", " d", "…", " g", "-Y", "+y"),
    ]


def test_lines_have_numbers_signs_and_the_width_of_the_terminal():
    changes = [
        DiffLine(KEPT, "a", 9),
        DiffLine(REMOVED, "b" * 50, 10),
        DiffLine(ADDED, "\tc", 10),
        DiffLine(GAP),
        DiffLine(KEPT),
    ]

    assert diff_lines(changes, PLAIN, 12) == [" 9   a", "10 - bbbbbb…", "10 +     c", "   …", ""]


def test_words_that_differ_are_marked_in_similar_lines():
    changes = [DiffLine(REMOVED, "return old(value)"), DiffLine(ADDED, "return new(value)")]

    assert diff_lines(changes, DEFAULT, 60) == [
        "\x1b[31m- \x1b[m\x1b[31mreturn \x1b[m\x1b[31;7mold\x1b[m\x1b[31m(value)\x1b[m",
        "\x1b[32m+ \x1b[m\x1b[32mreturn \x1b[m\x1b[32;7mnew\x1b[m\x1b[32m(value)\x1b[m",
    ]


def test_lines_that_have_little_in_common_are_not_compared():
    changes = [DiffLine(REMOVED, "import os"), DiffLine(ADDED, "x = {1: 2}")]

    assert "\x1b[32;7m" not in "".join(diff_lines(changes, DEFAULT, 60))


def test_lines_of_two_runs_are_compared_in_their_order():
    changes = [
        DiffLine(REMOVED, "a = 1"),
        DiffLine(REMOVED, "b = 1"),
        DiffLine(ADDED, "a = 2"),
        DiffLine(ADDED, "b = 2"),
    ]
    shown = diff_lines([*changes, DiffLine(ADDED, "c = 3")], DEFAULT, 60)

    assert [line.count("7m") for line in shown] == [1, 1, 1, 1, 0]


@given(texts, texts, st.integers(6, 40))
def test_all_lines_are_shown_whatever_the_width(old, new, width):
    changes = between("\n".join(old), "\n".join(new))

    assert len(diff_lines(changes, PLAIN, width)) == len(changes)
