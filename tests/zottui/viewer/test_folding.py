"""Lines of a terminal as rows of styled pieces."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from zottui.theme import DARK, TextRole
from zottui.viewer.folding import folded, marked, parsed, plain

TEXT = st.text(st.sampled_from("ab c漢字é\u0301👩\u200d🔬"), max_size=40)
PAINTED = st.lists(st.tuples(st.sampled_from([TextRole.TEXT, TextRole.MUTED, TextRole.HEADING]), TEXT))


@given(PAINTED)
def test_parsing_keeps_the_painted_text(parts):
    line = "".join(DARK.paint(role, text) for role, text in parts)
    assert plain(parsed(line)) == "".join(text for _, text in parts)


def test_a_style_begins_and_ends_with_its_sequences():
    line = f"a{DARK.paint(TextRole.STRONG, 'b')}\x1b[1m\x1b[31mc\x1b[0md"
    assert parsed(line) == [("", "a"), ("bold", "b"), ("ansired bold", "c"), ("", "d")]


@given(PAINTED, st.integers(2, 12))
def test_rows_are_what_fits_and_lose_nothing(parts, width):
    pieces = [(role.value, text) for role, text in parts if text]
    rows = list(folded(pieces, width))
    assert plain([piece for row in rows for piece in row.pieces]) == plain(pieces)
    offset = 0
    for row in rows:
        text = plain(row.pieces)
        assert row.offset == offset
        assert get_cwidth(text) <= width
        offset += len(text)


@given(TEXT, st.integers(2, 12))
def test_a_row_is_as_full_as_it_can_be(text, width):
    rows = [plain(row.pieces) for row in folded([("", text)], width)]
    for row, following in pairwise(rows):
        assert get_cwidth(row) + get_cwidth(following[0]) > width


def test_a_character_that_is_wider_than_the_screen_has_a_row_for_itself():
    assert [plain(row.pieces) for row in folded([("", "漢字a")], 1)] == ["漢", "字", "a"]


def test_what_joins_a_character_stays_with_it():
    assert [plain(row.pieces) for row in folded([("", "abe\u0301f")], 3)] == ["abe\u0301", "f"]


@given(PAINTED, st.lists(st.integers(-5, 60), max_size=6))
def test_hits_are_marked_across_pieces_and_nothing_else_is(parts, edges):
    pieces = [(role.value, text) for role, text in parts if text]
    ordered = sorted(set(edges))
    spans = list(zip(ordered[::2], ordered[1::2], strict=False))
    made = marked(pieces, spans, "hit")
    assert plain(made) == plain(pieces)
    wanted = {at for start, end in spans for at in range(start, end) if 0 <= at < len(plain(pieces))}
    assert {at for at, style in enumerate(style for style, text in made for _ in text) if "hit" in style} == wanted
