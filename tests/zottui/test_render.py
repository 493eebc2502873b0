"""Blocks as lines for the terminal."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zotd.client.columns import clipped, width_of
from zottui.blocks import Block, CodeLines, NoteLine, Prose, Rule, Thought, ToolRan, UserSaid
from zottui.columns import wrapped
from zottui.render import PROMPT_CHARS, PROMPT_LINES, render
from zottui.sanitize import harmless
from zottui.theme import DARK, PLAIN
from zottui.widgets.cells import POINTER

SAID = Prose("Hello **you**.")
READ = ToolRan("read", {"path": "a.py"}, "x\ny\n")


def plain(*blocks: Block, width: int = 60) -> list[str]:
    """The lines of several blocks, one below the other."""
    before = [None, *blocks]
    return [line for after, block in zip(before, blocks, strict=False) for line in render(block, width, PLAIN, after)]


def coloured(block: Block, width: int = 60) -> list[str]:
    """The text of its lines with a theme, without the colours."""
    return [re.sub(r"\x1b\[[\d;]*m", "", line) for line in render(block, width, DARK)]


# --- who speaks, and where one thing ends -------------------------------------------------------------------------


def test_without_colours_roles_are_named():
    assert plain(UserSaid("hi\nthere"), SAID, Prose("More."), READ, SAID, UserSaid("ok", sender="anna")) == [
        *("", "you: hi", "  there"),
        *("", "zot: Hello you."),
        *("", "More."),
        *("", "tool: read  a.py  2 lines"),
        *("", "zot: Hello you."),
        *("", "anna: ok"),
    ]


def test_code_without_colours_is_shown_between_fences():
    pieces = [
        CodeLines("py", ("a",), opens=True),
        CodeLines("py", ("b",), ("a",)),
        CodeLines("py", (), ("a", "b"), closes=True),
    ]

    assert plain(*pieces) == ["", "zot:", "```py", "a", "b", "```"]


def test_prompts_have_a_mark_and_say_whose_they_are():
    assert coloured(UserSaid("hi\n\nthere")) == ["", f"{POINTER} hi", "", "  there"]
    assert coloured(UserSaid("hi", images=2, sender="anna")) == ["", f"anna {POINTER} hi [2 images]"]


def test_a_long_prompt_is_broken_between_words_below_its_mark():
    assert coloured(UserSaid("one two three four five six"), width=24) == [
        "",
        f"{POINTER} one two three four",
        "  five six",
    ]


def test_a_pasted_prompt_is_printed_in_part_and_said_to_be():
    prompt = UserSaid("\n".join(f"line {i}" for i in range(5_000)))

    assert coloured(prompt)[-2:] == [f"  line {PROMPT_LINES - 1}", f"  … {5_000 - PROMPT_LINES} more (ctrl+t)"]
    assert len(coloured(prompt)) == PROMPT_LINES + 2
    assert len(render(prompt, 60, DARK, is_whole=True)) == 5_001


def test_a_pasted_line_without_end_is_printed_in_part():
    shown = "".join(coloured(UserSaid("x" * 100_000)))

    assert shown.count("x") == PROMPT_CHARS
    assert shown.endswith("  … 1 more (ctrl+t)")


def test_notes_and_thoughts_break_between_words():
    assert coloured(NoteLine("one two three four five"), width=22)[-2:] == ["· one two three four", "  five"]
    assert coloured(Thought(1, "one two three four five"), width=22)[-2:] == ["  one two three four", "  five"]


def test_code_is_shown_between_lines_that_name_its_language():
    pieces = [CodeLines("py x", ("a",), opens=True), CodeLines("py x", (), ("a",), closes=True)]

    assert [line for piece in pieces for line in coloured(piece, width=20)] == [
        *("", "── py ──────────────"),
        *("a", "─" * 20),
    ]


def test_tight_items_and_pieces_of_a_fence_follow_without_a_blank_line():
    assert plain(SAID, Prose("- a"), Prose("- b", tight=True)) == ["", "zot: Hello you.", "", "- a", "- b"]
    assert render(CodeLines("", ("b",), ("a",)), 60, DARK) == ["\x1b[38;5;180mb\x1b[m"]


def test_notes_of_one_line_stand_together():
    assert plain(
        SAID, NoteLine("a"), NoteLine("b", "warn"), NoteLine("c", "error", "ci"), NoteLine("d\ne", "success"), SAID
    ) == [
        *("", "zot: Hello you."),
        *("", "a", "warning: b", "error: ci: c", "", "done: d", "e"),
        *("", "zot: Hello you."),
    ]


def test_calls_that_show_nothing_stand_together():
    grep = ToolRan("grep", {"pattern": "x", "path": "src"}, "src/a.py:1:x")

    assert plain(READ, READ, grep, READ) == [
        *("", "tool: read  a.py  2 lines", "tool: read  a.py  2 lines"),
        *("", "tool: grep  x in src", "  src/a.py:1:x"),
        *("", "tool: read  a.py  2 lines"),
    ]


def test_a_rule_shows_its_text():
    assert plain(Rule("12 earlier\nmessages")) == ["", "--- 12 earlier messages ---"]
    assert coloured(Rule("compacted")) == ["", "── compacted ──"]


def test_a_thought_is_a_line_and_its_text_if_wanted():
    assert plain(Thought(3.4)) == ["", "thought 3s"]
    assert plain(Thought(65, "a\n\nb\n")) == ["", "thought 1m 05s", "  a", "", "  b"]


# --- tool cards ---------------------------------------------------------------------------------------------------


def ran(name: str, result: str, is_error: bool = False, **args: object) -> ToolRan:
    return ToolRan(name, args, result, is_error)


def body(call: ToolRan, width: int = 60) -> list[str]:
    """The lines below the header."""
    return plain(call, width=width)[2:]


def head(call: ToolRan, width: int = 60) -> str:
    return plain(call, width=width)[1]


def test_a_long_result_shows_its_first_lines():
    call = ran("grep", "\n".join(f"a:{i}:x" for i in range(120)), pattern="x")

    assert body(call) == [*(f"  a:{i}:x" for i in range(8)), "  … 112 more (ctrl+t)"]


def test_a_command_shows_its_first_and_last_lines_and_how_it_ended():
    output = "\n".join(map(str, range(20)))
    call = ran("bash", f"$ make\n\n{output}\n[exit 2]  Took 1.5s", is_error=True, command="make")

    assert head(call) == "tool: bash  make  exit 2"
    assert body(call) == ["  0", "  1", "  2", "  … 12 more (ctrl+t)", *(f"  {i}" for i in range(15, 20))]


def test_a_command_that_went_well_says_nothing_about_that():
    call = ran("bash", "$ a\n\nb\n\n[exit 0]  Took 0.0s", command="a\n\nb")

    assert plain(call) == ["", "tool: bash  a b"]
    assert body(ran("bash", "$ long …\n\nout\n[exit 0]  Took 0.0s", command="long and longer")) == ["  out"]


def test_a_call_that_was_slow_says_how_long_it_took():
    assert head(ToolRan("read", {"path": "a"}, "", seconds=12.3)) == "tool: read  a  1 line  12s"
    assert head(ToolRan("read", {"path": "a"}, "", seconds=0.3)) == "tool: read  a  1 line"


def test_a_failure_is_shown_in_words_and_in_colour():
    call = ran("edit", "cannot edit a: no such file", is_error=True, path="a", edits=[])

    assert plain(call) == ["", "tool: edit  a  failed", "  cannot edit a: no such file"]
    assert render(call, 60, DARK)[-1] == "  \x1b[38;5;203mcannot edit a: no such file\x1b[m"


def test_an_edit_shows_what_has_changed():
    diff = "--- a\n+++ a\n@@ -7,5 +7,5 @@\n 1\n 2\n-old\n+new\n 3\n 4"
    call = ran("edit", f"Edited a: 1 replacement\n\n{diff}", path="a", edits=[])

    assert plain(call) == ["", "tool: edit  a  +1  -1", "   8   2", "   9 - old", "   9 + new", "  10   3"]


def test_a_change_says_how_many_errors_it_has_caused():
    diff = "--- a\n+++ a\n@@ -7,5 +7,5 @@\n 1\n 2\n-old\n+new\n 3\n 4"
    errors = "2 new errors after this change:\na:7:1: x (fake)\na:8:1: y (fake)"

    assert head(ran("edit", f"Edited a: 1 replacement\n\n{diff}\n\n{errors}", path="a")) == (
        "tool: edit  a  +1  -1  2 new errors"
    )
    assert head(ran("write", f"Replaced a (2 bytes)\n\n{errors}", path="a", content="x")) == (
        "tool: write  a  replaced, 1 line  2 new errors"
    )


def test_an_edit_without_a_diff_shows_the_requested_changes():
    call = ran("edit", "done", path="a", edits=[{"oldText": "x\ny", "newText": "x\nz"}, {"oldText": 1}, "?"])

    assert body(call)[:3] == ["    x", "  - y", "  + z"]


def test_a_new_file_is_shown_as_added_and_a_replaced_one_as_it_is():
    assert plain(ran("write", "Created a (4 bytes)", path="a", content="x\n\ty\n")) == [
        *("", "tool: write  a  +2", "  1 + x", "  2 +     y")
    ]
    assert plain(ran("write", "Replaced a (2 bytes)", path="a", content="x")) == [
        *("", "tool: write  a  replaced, 1 line", "  x")
    ]
    assert plain(ran("write", "Created a (0 bytes)", path="a", content="")) == ["", "tool: write  a"]


def test_a_tool_of_an_extension_says_whose_it_is_and_is_taken_for_nothing_else():
    call = ToolRan("bash", {"command": "x", "deep": {"a": 1}, "n": 3}, "out", extension="sandbox", images=1)

    assert plain(call) == ["", "tool: bash  x  1 image  (sandbox)", "  out"]
    assert head(ToolRan("weather", {"city": "Bonn", "days": 3, "deep": []}, "")) == "tool: weather  Bonn 3"


def test_no_line_of_a_card_is_wider_than_the_terminal():
    call = ran("bash", "$ x\n\n" + "日" * 200_000 + "\n[exit 0]  Took 0.0s", command="echo " * 100)

    assert [width_of(line) for line in plain(call, width=41)] == [0, 41, 41]


def test_a_progress_bar_shows_its_last_state():
    assert body(ran("grep", "10%\r20%\r100%\r\nok")) == ["  100%", "  ok"]


@given(st.dictionaries(st.text(max_size=9), st.none() | st.booleans() | st.integers() | st.text(max_size=9)), st.text())
def test_any_call_can_be_shown(args, result):
    for name in ("bash", "read", "write", "edit", "grep", "glob", "skill", ""):
        for is_error in (False, True):
            lines = plain(ToolRan(name, args, result, is_error))
            assert not [line for line in lines if re.search(r"[\x00-\x1f\x7f-\x9f]", line)]


# --- what cannot steer --------------------------------------------------------------------------------------------


def test_control_characters_are_shown_and_colours_dropped():
    assert harmless("a\x1b[31mb\x1b[0m\x1b]0;title\x07\x9b2J\x7f") == "ab^[]0;title^G<U+009B>2J^?"
    assert harmless("a\u202eb\u2066\u2028") == "a<U+202E>b<U+2066><U+2028>"


def test_tabs_are_expanded_and_line_ends_are_one_kind():
    assert harmless("ab\tc\r\n\td\re") == "ab  c\n    d^Me"


def test_half_a_surrogate_pair_can_be_written():
    assert harmless("a\ud83db").encode() == "a\ufffdb".encode()


@given(st.text())
def test_harmless_text_has_no_control_characters_and_stays_as_it_is(text):
    shown = harmless(text)

    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", shown)
    assert harmless(shown) == shown


@pytest.mark.parametrize(
    "block",
    [
        UserSaid("\x1b[2J", sender="\x07"),
        NoteLine("\x1b[2J", source="\x07"),
        Rule("\x1b[2J"),
        Thought(1, "\x1b[2J"),
        CodeLines("\x1b[2J", ("\x1b[2J",), opens=True),
        ToolRan("\x07", {"x": "\x1b[2J"}, "\x1b[2J", extension="\x07"),
    ],
)
def test_no_block_can_steer_the_terminal(block):
    for line in render(block, 60, PLAIN):
        assert not re.search(r"[\x00-\x1f]", line)


# --- columns ------------------------------------------------------------------------------------------------------


def test_text_is_clipped_by_columns():
    assert [clipped("日本語", width) for width in (6, 5, 4, 3, 1, 0)] == ["日本語", "日本…", "日…", "日…", "…", ""]
    assert clipped("abc", 2) == "a…"


@given(st.lists(st.sampled_from(["a", " ", "日", "👍🏽", "e\u0301", "👩\u200d👧"])).map("".join), st.integers(2, 10))
def test_wrapped_rows_fit_and_contain_the_whole_text(text, width):
    rows = wrapped(text, width)

    assert "".join(rows) == text
    assert all(width_of(row) <= width for row in rows)


@pytest.mark.parametrize("output", ["[" * 1_000_000, "\n" * 1_000_000 + "x"])
def test_no_output_of_a_command_takes_longer_than_its_length(output):
    assert len(plain(ran("bash", f"$ x\n\n{output}\n[exit 0]  Took 0.0s", command="x"))) == 3


def test_a_plan_shows_its_steps_until_it_is_begun():
    steps = [{"text": "look"}, {"text": "change"}]
    call = ran("plan", "the plan has 2 steps, 0 done; the user sees it", steps=steps)
    assert head(call) == "tool: plan  0 of 2 done"
    assert body(call) == ["  [ ] look", "  [ ] change"]
    steps = [{"text": "look", "state": "done"}, {"text": "change", "state": "active"}]
    call = ran("plan", "the plan has 2 steps, 1 done; the user sees it", steps=steps)
    assert (head(call), body(call)) == ("tool: plan  change  1 of 2 done", [])


def test_a_plan_that_was_approved_with_changes_shows_these():
    result = "the user has approved the plan with changes. It is now:\n[ ] test\n, and the session's mode is yolo"
    assert body(ran("plan", result, steps=[{"text": "look"}])) == ["  [ ] test"]
    assert body(ran("plan", "odd", steps=7)) == ["  odd"]
