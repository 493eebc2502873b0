"""Markdown as lines for the terminal."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zotd.client.columns import width_of
from zottui.markdown import CONTEXT_LINES
from zottui.markdown.code import LINE_CHARS, highlighted
from zottui.markdown.emit import PARSED_CHARS, markdown_lines
from zottui.theme import DARK, DEFAULT, PLAIN, Syntax, TextRole, Theme

ROLES = Theme("roles", {role: role.name for role in TextRole}, {syntax: syntax.name for syntax in Syntax})
"""Says the roles instead of painting, and shows addresses."""


def shown(source: str, width: int = 80) -> list[str]:
    """The lines, `{role:text}` for what is painted."""
    return [spelt(line) for line in markdown_lines(source, width, ROLES)]


def spelt(line: str) -> str:
    return re.sub(r"\x1b\[([A-Z;]+)m(.*?)\x1b\[m", lambda found: f"{{{found[1].lower()}:{found[2]}}}", line)


def plain(source: str, width: int = 80) -> list[str]:
    return markdown_lines(source, width, PLAIN)


def painted(language: str, *lines: str) -> list[str]:
    return [spelt(line) for line in highlighted(language, lines, (), ROLES)]


# --- text ---------------------------------------------------------------------------------------------------------


def test_prose_breaks_between_words():
    assert plain("one two three\nfour five six", width=20) == ["one two three four", "five six"]
    assert shown("one **two three** four five six", width=20) == ["one {strong:two three} four", "five six"]


def test_a_word_that_is_wider_than_the_row_is_left_whole():
    address = "https://a.example/" + "b" * 40

    assert plain(f"see {address} there", width=20) == ["see", address, "there"]


def test_wide_characters_break_anywhere_but_before_closing_punctuation():
    assert plain("漢字" * 12, width=20) == ["漢字" * 5, "漢字" * 5, "漢字漢字"]
    assert plain("漢字" * 5 + "。漢", width=20) == ["漢字" * 4 + "漢", "字。漢"]


def test_prose_is_not_broken_with_wrap_terminal():
    theme = replace(PLAIN, wraps_words=False)

    assert markdown_lines("- " + "word " * 100 + "\nmore", 20, theme) == ["- " + "word " * 99 + "word more"]


@given(st.text("ab 漢é。-", max_size=80), st.integers(20, 60))
@settings(deadline=None)
def test_no_word_is_lost_by_breaking_prose(text, width):
    rows = plain(f"x {text}", width)

    assert "".join("".join(rows).split()) == "".join(plain(f"x {text}", 10_000)[0].split())
    assert all(width_of(row) <= width or " " not in row.strip() for row in rows)


def test_a_hard_break_is_a_new_line():
    assert plain("one  \ntwo\\\nthree") == ["one", "two", "three"]


def test_marks_are_roles():
    assert shown("a **b** *c* `d` ~~e~~ ***f***") == [
        "a {strong:b} {emphasis:c} {code:d} {struck:e} {emphasis;strong:f}"
    ]


def test_without_colours_marks_that_carry_a_meaning_stay():
    assert plain("# T\n\na **b** `c` ~~d~~") == ["# T", "", "a b `c` ~~d~~"]


def test_headings_differ_by_level():
    assert shown("# A `b`\n\n### C") == ["{heading:A }{heading;code:b}", "", "{strong:C}"]


def test_html_is_text_and_keeps_its_lines():
    assert plain("<details>\n<b>x</b> &amp; y\n</details>") == ["<details>", "<b>x</b> & y", "</details>"]


def test_a_definition_of_a_link_is_text():
    assert plain("[a]: https://b.example 'c'") == ["[a]: https://b.example 'c'"]


def test_a_rule_is_short():
    assert markdown_lines("---", 200, DEFAULT) == [f"\x1b[2m{'─' * 40}\x1b[m"]


# --- lists and quotations -----------------------------------------------------------------------------------------


def test_lists_nest():
    assert shown("- a\n  - b\n    1. c\n- d") == ["{accent:• }a", "  {accent:◦ }b", "    {accent:1. }c", "{accent:• }d"]


def test_a_loose_list_has_blank_lines_and_a_tight_one_has_none():
    assert plain("- a\n- b") == ["- a", "- b"]
    assert plain("1. a\n\n   b\n2. c") == ["1. a", "", "   b", "", "2. c"]


def test_the_lines_of_an_item_hang_below_its_text():
    assert plain("- one two three four five\n  1. six seven eight nine ten", width=25) == [
        "- one two three four five",
        "  1. six seven eight nine",
        "     ten",
    ]


def test_the_lines_of_a_quotation_all_have_its_bar():
    assert plain("> one two three four five", width=22) == ["> one two three four", "> five"]


def test_tasks_have_boxes():
    assert shown("- [x] a\n- [ ] b") == ["{accent:• }☑ a", "{accent:• }☐ b"]
    assert plain("- [x] a") == ["- [x] a"]


def test_the_rest_of_a_list_item_after_a_fence_keeps_its_indentation():
    assert plain("   then\n   - a") == ["   then", "", "   - a"]


def test_quotations_nest():
    assert plain("> a\n> > b\n>\n> - c") == ["> a", ">", "> > b", ">", "> - c"]
    assert shown("> a *b*") == ["{muted:│} {quote:a }{quote;emphasis:b}"]


@pytest.mark.parametrize("source", [">" * 500 + " word", "- " * 500 + "word", "*a " * 2000 + "word"])
def test_deeply_nested_markdown_is_shown_as_source(source):
    assert " ".join(plain(source)) == source


def test_very_long_markdown_is_shown_as_source():
    source = "**a** " * PARSED_CHARS

    assert plain(source) == [source]


# --- links --------------------------------------------------------------------------------------------------------


def linked(text: str, address: str) -> str:
    return f"\x1b]8;;{address}\x1b\\\x1b[4;34m{text}\x1b[m\x1b]8;;\x1b\\"


def test_a_link_can_be_clicked():
    assert markdown_lines("see [it](https://a.example/b)", 80, DEFAULT) == [
        "see " + linked("it", "https://a.example/b")
    ]


def test_where_nothing_can_be_clicked_the_address_is_shown():
    assert shown("[it](https://a.example/b)") == ["{link:it}{muted: (https://a.example/b)}"]
    assert plain("<https://a.example>") == ["https://a.example"]
    assert plain("![a plan](plan.png)") == ["image: a plan (plan.png)"]


def test_a_file_cannot_be_clicked():
    assert markdown_lines("[x](src/x.py)", 80, DEFAULT) == ["\x1b[4;34mx\x1b[m\x1b[2m (src/x.py)\x1b[m"]


def test_a_text_that_looks_like_another_address_does_not_hide_where_it_leads():
    (line,) = markdown_lines("[bank.example](https://evil.example)", 80, DEFAULT)

    assert line == linked("bank.example", "https://evil.example") + "\x1b[2m (https://evil.example)\x1b[m"


def test_a_character_that_is_written_as_an_entity_cannot_steer_either():
    assert plain("a &#x202e; [b](https://c.example/&#x202e;)") == ["a <U+202E> b (https://c.example/%E2%80%AE)"]


@given(st.text("[]()<>!*`\x1b\x07\x9c\\;:/a \u202e&#x27b3\t", max_size=40), st.sampled_from([DEFAULT, DARK, PLAIN]))
@settings(deadline=None)
def test_no_text_brings_a_sequence_of_its_own(text, theme):
    ours = re.compile(r"\x1b\[[\d;]*m|\x1b\]8;;[!-~]*\x1b\\")
    for line in markdown_lines(f"a {text}", 80, theme):
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e]", ours.sub("", line))


# --- tables -------------------------------------------------------------------------------------------------------

TABLE = "| Name | N |\n|:--|--:|\n| **日本** | 1 |\n| b | 1000 |"


def test_table_columns_are_aligned_by_visible_width():
    assert shown(TABLE) == [
        "{strong:Name}     {strong:N}",
        "{muted:────  ────}",
        "{strong:日本}     1",
        "b     1000",
    ]


def test_a_table_that_is_too_wide_wraps_its_cells():
    table = "| File | What it does |\n|---|---|\n| a.py | reads all of the settings |\n| b.py | writes |"

    assert plain(table, width=24) == [
        "File  What it does",
        "----  ------------------",
        "a.py  reads all of the",
        "      settings",
        "....  ..................",
        "b.py  writes",
    ]


def test_words_of_a_table_are_cut_only_when_columns_would_not_fit_otherwise():
    table = f"| {'a' * 12} | b |\n|---|---|\n| c | d |"

    assert plain(table, width=15) == [f"{'a' * 12}  b", f"{'-' * 12}  -", "c             d"]
    assert plain(table, width=12) == [f"{'a' * 9}  b", f"{'a' * 3}", f"{'-' * 9}  -", "c          d"]


def test_a_table_without_room_for_its_columns_becomes_records():
    assert shown(TABLE, width=9) == [
        "{strong:Name}: {strong:日本}",
        "{strong:N}: 1",
        "",
        "{strong:Name}: b",
        "{strong:N}: 1000",
    ]
    assert len(shown(TABLE, width=10)) == 4


def test_without_colours_a_table_keeps_its_columns():
    assert plain(TABLE) == ["Name     N", "----  ----", "日本     1", "b     1000"]


def test_cells_without_a_head_are_not_lost():
    assert plain("| a |\n|---|\n| b | c |") == ["| a |", "|---|", "| b | c |"]


def test_a_row_may_have_too_few_cells():
    assert [line.strip() for line in shown("| a | b |\n|---|---|\n| c |")][-1] == "c"


def test_a_table_in_a_list_item_is_one():
    assert plain("- a\n\n  | b | c |\n  |---|---|\n  | d | e |") == ["- a", "", "  b  c", "  -  -", "  d  e"]


# --- code ---------------------------------------------------------------------------------------------------------


def test_code_is_painted_by_language():
    assert painted("python", "def f(x): return 'a'  # b") == [
        "{keyword:def} {name:f}(x): {keyword:return} {string:'a'}  {comment:# b}"
    ]
    assert painted("JSON", '{"a": 1}') == ['{{name:"a"}: {number:1}}']
    assert painted("diff title=x", "-a", "+b") == ["{removed:-a}", "{added:+b}"]


def test_an_unknown_language_is_painted_as_code():
    assert painted("no-such-language", "x") == ["{code:x}"]
    assert painted("", "x") == ["{code:x}"]


def test_a_string_continues_on_the_next_line():
    assert painted("python", '"""a', "if b", '"""', "if b: pass")[1:] == [
        "{string:if b}",
        '{string:"""}',
        "{keyword:if} b: {keyword:pass}",
    ]


def test_a_comment_is_one_before_its_end_has_come():
    assert painted("js", "/* a", "if (b)") == ["{comment:/* a}", "{comment:if (b)}"]
    assert painted("js", "/* a", "b */ if (c)")[1] == "{comment:b */} {keyword:if} (c)"


@given(st.lists(st.sampled_from(['"""', "if x: 'a'", "/* b", "c */", "`d", "// e", "", "<!-- f", "-->"]), max_size=12))
@settings(deadline=None)
def test_lines_that_come_one_by_one_look_the_same(lines):
    for language in ("python", "js", "html", "yaml", "c", "console"):
        one_by_one = [highlighted(language, [line], tuple(lines[:i]), ROLES)[0] for i, line in enumerate(lines)]

        assert one_by_one == highlighted(language, lines, (), ROLES)
        assert [re.sub(r"\x1b\[[A-Z;]*m", "", line) for line in one_by_one] == lines


def test_code_is_plain_behind_so_many_lines():
    lines = highlighted("python", ["if x: pass"] * (CONTEXT_LINES + 1), (), ROLES)

    assert lines[CONTEXT_LINES - 1] == lines[0] != "if x: pass"
    assert lines[CONTEXT_LINES] == "if x: pass"


def test_a_line_that_a_program_has_written_is_plain():
    line = "if " * LINE_CHARS

    assert painted("python", line) == [line]


def test_code_has_spaces_for_tabs_and_no_sequences():
    assert painted("text", "\ta\x1b[2J\x1b[31mb") == ["    a^[[2Jb"]


def test_a_fence_in_a_quotation_is_labelled_with_and_without_colours():
    assert shown("> ```py\n> 1\n> ```", width=12) == [
        "{muted:│} {muted:── py ────}",
        "{muted:│} {number:1}",
        "{muted:│} {muted:──────────}",
    ]
    assert plain("> ```py\n> 1\n> ```") == ["> ```py", "> 1", "> ```"]


def test_indented_code_is_set_apart_like_a_fence():
    assert shown("    a\n     b", width=12) == ["{muted:── code ────}", "{code:a}", "{code: b}", "{muted:────────────}"]
    assert plain("    a") == ["```", "a", "```"]


@given(st.text("| -a日`*\n", max_size=60), st.integers(1, 30))
@settings(deadline=None)
def test_tables_are_never_wider_than_the_terminal(cells, width):
    for line in markdown_lines(f"| a | b |\n|---|---|\n| {cells}", width, DEFAULT):
        text = re.sub(r"\x1b\[[\d;]*m", "", line)
        assert "──" not in text or width_of(text) <= max(width, 40)
