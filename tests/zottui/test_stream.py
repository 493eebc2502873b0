"""What of a stream of Markdown is finished, and what waits."""

import re
import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from zottui.blocks import Block, CodeLines, Prose
from zottui.markdown import CONTEXT_LINES
from zottui.markdown.stream import Stream, tail
from zottui.render import render
from zottui.theme import DARK

STARTS = [
    "", "", "  ", "   ", "    ", "\t", "- ", "* ", "  - ", "    - ", "1. ", "2. ", "10) ", "> ", "> - ", "# ", "### ", "-",
]  # fmt: skip
WHOLE = [
    "",
    "",
    "```",
    "```",
    "```python",
    "```js",
    "   ```",
    "~~~~",
    "---",
    "===",
    "***",
    "|-|-|",
    "- ",
    "- ```",
    "</details>",
]

words = st.integers(0, 99).map("w{}".format)
lines = st.one_of(
    st.sampled_from(WHOLE),
    st.builds(str.__add__, st.sampled_from(STARTS), st.lists(words, min_size=1, max_size=3).map(" ".join)),
    st.builds("| {} | {} |".format, words, words),
    st.builds('{} = """{}'.format, words, words),
    st.builds("/* {} */ {}".format, words, words),
    st.builds("**{} `{}` *{}".format, words, words, words),
)
texts = st.builds(
    lambda found, end: "\n".join(found) + end, st.lists(lines, max_size=25), st.sampled_from(["", "\n", "\r\n"])
)


thorough = settings(deadline=None)  # the first example loads the parser


def blocks(*deltas: str) -> list[Block]:
    stream = Stream()
    found: list[Block] = []
    for delta in deltas:
        finished, stream = stream.feed(delta)
        found += finished
    return [*found, *stream.end()]


def printed(found: list[Block]) -> list[str]:
    return [
        line for after, block in zip([None, *found], found, strict=False) for line in render(block, 10_000, DARK, after)
    ]


def plain(line: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m|\x1b\]8;[^\x1b]*\x1b\\", "", line)


def sources(text: str) -> list[str]:
    return [block.source for block in blocks(text) if isinstance(block, Prose)]


def finished(text: str) -> list[Block]:
    """What is printed when nothing more has come yet."""
    return list(Stream().feed(text)[0])


# --- any text, in any pieces --------------------------------------------------------------------------------------


@thorough
@given(texts | st.text("`~-*+>#|1. \tab\n\r", max_size=60), st.data())
def test_how_a_text_is_cut_into_deltas_does_not_show(text, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    deltas = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]

    assert printed(blocks(*deltas)) == printed(blocks(text))


@thorough
@given(texts)
def test_one_character_at_a_time_shows_the_same(text):
    assert printed(blocks(*text)) == printed(blocks(text))


@thorough
@given(texts)
def test_no_word_is_lost_or_printed_twice(text):
    shown = "\n".join(plain(line) for line in printed(blocks(text)))

    assert re.findall(r"w\d+", shown) == re.findall(r"w\d+", text)


@thorough
@given(texts, st.integers(0, 200))
def test_printed_and_pending_text_make_up_the_whole_text(text, place):
    found, stream = Stream().feed(text[:place])
    shown = [line for block in found for line in (block.lines if isinstance(block, CodeLines) else [block.source])]  # type: ignore[union-attr]  # a stream has no others

    assert re.findall(r"w\d+", "\n".join([*shown, stream.pending])) == re.findall(r"w\d+", text[:place])


# --- what is finished ---------------------------------------------------------------------------------------------


def test_a_paragraph_is_printed_when_it_is_over():
    assert finished("One\ntwo\n") == []
    assert finished("One\ntwo\n\n") == [Prose("One\ntwo")]
    assert finished("One\n# Two\n") == [Prose("One"), Prose("# Two")]


def test_nothing_of_a_line_is_printed_before_its_end():
    assert finished("A paragraph.\n\n# Head") == [Prose("A paragraph.")]


def test_an_underlined_heading_is_no_paragraph_with_a_rule_below():
    assert sources("Title\n---\ntext\n\nOther\n===\n") == ["Title\n---", "text", "Other\n==="]


def test_list_items_are_printed_one_by_one():
    assert finished("- one\n- two\n- three\n") == [Prose("- one"), Prose("- two", tight=True)]


def test_an_item_behind_a_blank_line_is_not_tight():
    assert blocks("1. one\n\n2. two\n3. three\n") == [Prose("1. one"), Prose("2. two"), Prose("3. three", tight=True)]


def test_an_item_keeps_its_nested_blocks():
    assert sources("- one\n  - two\n\n  more\n- three\n") == ["- one\n  - two\n\n  more", "- three"]


def test_text_behind_a_list_is_a_paragraph():
    assert sources("- one\n\ntext\n") == ["- one", "text"]


def test_a_number_that_begins_a_line_is_no_list():
    assert sources("It was in\n1984. A year.\n") == ["It was in\n1984. A year."]


def test_a_table_is_one_block_that_ends_with_its_rows():
    table = "| a | b |\n|---|---|\n| 1 | 2 |"

    assert finished(f"Text\n{table}\n") == [Prose("Text")]
    assert sources(f"Text\n{table}\nmore\n") == ["Text", table, "more"]


def test_dashes_that_do_not_fit_the_row_above_make_no_table():
    assert sources("a | b\n|---|\nmore\n") == ["a | b\n|---|\nmore"]


def test_line_ends_may_be_those_of_windows():
    assert blocks("a\r\nb\r", "\n\r\n```\r\nc\r\n```\r\n") == [
        Prose("a\nb"),
        CodeLines("", ("c",), opens=True, closes=True),
    ]


def test_a_quotation_is_one_block():
    assert sources("> a\n> b\nlazy\n\nc\n") == ["> a\n> b\nlazy", "c"]


def test_lines_of_a_fence_are_printed_as_they_come():
    found, stream = Stream().feed("```python\nx = 1\ny")
    assert found == (CodeLines("python", ("x = 1",), opens=True),)

    found, stream = stream.feed(" = 2\n```\n")
    assert found == (CodeLines("python", ("y = 2",), ("x = 1",), closes=True),)
    assert stream.end() == ()


def test_a_fence_that_is_never_closed_is_closed_at_the_end():
    assert blocks("```\na\n\nb") == [
        CodeLines("", ("a", ""), opens=True),
        CodeLines("", ("b",), ("a", "")),
        CodeLines("", (), ("a", "", "b"), closes=True),
    ]


def test_a_shorter_fence_is_a_line_of_a_longer_one():
    found = blocks("````md\n```\nx\n```\n````\n")

    assert found == [CodeLines("md", ("```", "x", "```"), opens=True, closes=True)]


def test_code_in_a_list_item_is_not_indented_and_the_item_continues():
    found = blocks("1. Do\n   ```sh\n   make\n     it\n   ```\n   then\n2. Go\n")

    assert found == [
        Prose("1. Do"),
        CodeLines("sh", ("make", "  it"), opens=True, closes=True),
        Prose("   then"),
        Prose("2. Go", tight=True),
    ]


def test_code_in_a_list_item_need_not_be_indented():
    assert blocks("1. Do\n   ```\nmake\n   ```\n")[1] == CodeLines("", ("make",), opens=True, closes=True)


def test_a_long_fence_knows_its_first_lines_only():
    stream = Stream()
    piece = CodeLines("", ())
    for i in range(CONTEXT_LINES + 5):
        (*_, piece), stream = stream.feed(("```\n" if i == 0 else "") + f"{i}\n")  # type: ignore[assignment]

    assert piece.lines == (str(CONTEXT_LINES + 4),)
    assert piece.before == tuple(map(str, range(CONTEXT_LINES)))


# --- the tail -----------------------------------------------------------------------------------------------------


def pending(text: str) -> Stream:
    return Stream().feed(text)[1]


def test_the_tail_is_the_last_rows_of_the_pending_text():
    assert tail(pending("a\nb\nc"), 2, 10) == ["b", "c"]
    assert tail(pending("abcdefgh"), 2, 3) == ["def", "gh"]
    assert tail(pending("x " * 100_000), 3, 10) == ["x x x x x", "x x x x x", "x x x x x "]


def test_the_tail_counts_columns():
    assert tail(pending("日本語a"), 5, 4) == ["日本", "語a"]


def test_the_tail_is_empty_when_nothing_waits():
    assert tail(Stream(), 5, 10) == []
    assert tail(pending("```\nx\n"), 5, 10) == []


def test_the_tail_holds_back_what_the_next_delta_may_change():
    assert tail(pending("ok 👩"), 5, 20) == ["ok "]
    assert tail(pending("ok 👩\u200d👧."), 5, 20) == ["ok 👩\u200d👧."]
    assert tail(pending("ok \x1b[3"), 5, 20) == ["ok "]


def test_the_tail_cannot_steer_the_terminal():
    assert tail(pending("a\x1b[2Jb\x07"), 5, 20) == ["a^[[2Jb^G"]


def test_importing_the_stream_and_the_renderer_loads_no_parser():
    code = "import sys, zottui.markdown.stream, zottui.render; print([n for n in ('markdown_it', 'pygments') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)

    assert done.stdout == "[]\n"
