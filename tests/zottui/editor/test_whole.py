"""What an edit does to pieces that are one thing."""

from hypothesis import given
from hypothesis import strategies as st

from zottui.editor.placeholders import Placeholders
from zottui.editor.whole import Replacement, edit, mended, outside

WORDS = st.text(st.sampled_from("ab #1·\n]p"), max_size=12)
CONTENTS = st.text(st.sampled_from("ab \n["), min_size=1, max_size=30)
TEXT = st.text(st.sampled_from("ab"), max_size=12)


def after_edit(placeholders, before, after, cursor):
    return mended(before, edit(before, after, cursor), placeholders.lost(before, after))


@given(TEXT, TEXT, TEXT, TEXT)
def test_an_edit_that_leaves_the_cursor_behind_it_is_found(head, old, new, tail):
    found = edit(head + old + tail, head + new + tail, len(head + new))
    assert found.end == len(head + old)
    assert (head + old)[: found.start] + found.inserted == head + new


@given(TEXT, TEXT, st.integers(0, 12))
def test_an_edit_is_found_wherever_the_cursor_is(before, after, cursor):
    found = edit(before, after, min(cursor, len(after)))
    assert before[: found.start] + found.inserted + before[found.end :] == after


def test_of_the_same_results_the_cursor_tells_which():
    assert edit("aa", "a", 0) == Replacement(0, 1, "")
    assert edit("aa", "a", 1) == Replacement(1, 2, "")


@given(st.lists(st.tuples(WORDS, CONTENTS), min_size=1, max_size=4), st.data())
def test_a_deletion_leaves_no_piece_of_a_placeholder_and_nothing_else_goes(pieces, data):
    placeholders = Placeholders()
    parts = [part for words, content in pieces for part in (words.replace("[", ""), placeholders.paste(content))]
    before = "".join(parts)
    start = data.draw(st.integers(0, len(before)))
    end = data.draw(st.integers(start, len(before)))
    after = before[:start] + before[end:]
    repaired = after_edit(placeholders, before, after, start)
    kept, at = "", 0
    for part in parts:
        span = at, at + len(part)
        at = span[1]
        if part in placeholders.pastes:
            kept += part if end <= span[0] or span[1] <= start or start == end else ""
        else:
            kept += "".join(c for n, c in enumerate(part, span[0]) if not start <= n < end)
    assert (after if repaired is None else repaired[0]) == kept


def test_the_second_of_two_neighbours_stays_when_the_first_is_deleted():
    placeholders = Placeholders()
    first, second = placeholders.paste("x\n" * 60), placeholders.paste("y\n" * 20)
    assert after_edit(placeholders, first + second, second, 0) is None
    assert after_edit(placeholders, first + second, first, len(first)) is None


def test_text_typed_over_a_part_of_a_placeholder_stays():
    placeholders = Placeholders()
    label = placeholders.paste("x\n" * 60)
    assert after_edit(placeholders, f"a {label} b", f"a {label[:-3]}Zs] b", len(f"a {label[:-3]}Z")) == ("a Z b", 3)


@given(st.integers(0, 20), st.integers(0, 20))
def test_the_cursor_never_stops_inside(position, came_from):
    there = outside(position, came_from, [(3, 8), (8, 12)])
    assert not 3 < there < 8
    assert not 8 < there < 12
    assert there == position or (there > position) == (position > came_from)
