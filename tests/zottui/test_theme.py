"""Colours by what they mean."""

import pytest
from prompt_toolkit.styles import Style

from zottui.theme import DARK, DEFAULT, LIGHT, PLAIN, THEMES, Syntax, TextRole, choose

XTERM = {"TERM": "xterm-256color"}


@pytest.mark.parametrize("env", [XTERM | {"NO_COLOR": "1"}, {"TERM": "dumb"}, {}])
def test_no_colours_with_no_color_or_a_dumb_terminal(env):
    assert choose(env, "dark", is_dark=True) is PLAIN


def test_an_empty_no_color_means_nothing():
    assert choose(XTERM | {"NO_COLOR": ""}, "dark") == DARK


def test_a_theme_is_chosen_by_name_or_by_the_background():
    assert choose(XTERM, "light", is_dark=True) == LIGHT
    assert choose(XTERM, is_dark=True) == DARK
    assert choose(XTERM, "no such theme", is_dark=False) == LIGHT
    assert choose(XTERM) == DEFAULT


@pytest.mark.parametrize(("colours", "theme"), [("15;0", DARK), ("0;15", LIGHT), ("0;default;8", DARK), ("x", DEFAULT)])
def test_a_terminal_may_say_what_its_background_is(colours, theme):
    assert choose(XTERM | {"COLORFGBG": colours}) == theme


def test_a_terminal_with_16_colours_gets_its_own():
    assert choose({"TERM": "xterm"}, is_dark=True) == DEFAULT
    assert choose({"TERM": "xterm", "COLORTERM": "truecolor"}, is_dark=True) == DARK


@pytest.mark.parametrize(
    ("env", "has_links"),
    [
        ({}, True),
        ({"TERM": "linux"}, False),
        ({"TERM_PROGRAM": "Apple_Terminal"}, False),
        ({"TERM": "screen-256color"}, False),
        ({"TERM_PROGRAM": "tmux", "TERM_PROGRAM_VERSION": "3.3a", "TMUX": "x"}, False),
        ({"TERM_PROGRAM": "tmux", "TERM_PROGRAM_VERSION": "3.4", "TMUX": "x", "TERM": "screen"}, True),
        ({"TERM_PROGRAM": "tmux", "TERM_PROGRAM_VERSION": "3.10", "TMUX": "x"}, True),
        ({"TERM_PROGRAM": "tmux", "TERM_PROGRAM_VERSION": "next-3.6", "TMUX": "x"}, True),
    ],
)
def test_links_are_for_terminals_that_keep_them(env, has_links):
    assert choose(XTERM | env, "dark").has_links == has_links


def test_the_default_uses_no_colour_that_a_background_may_have():
    used = {part for parameters in (*DEFAULT.sgr.values(), *DEFAULT.code.values()) for part in parameters.split(";")}

    assert used <= {"1", "2", "3", "4", "7", "9", "31", "32", "33", "34", "35", "36"}


@pytest.mark.parametrize("theme", [DEFAULT, DARK, LIGHT])
def test_a_theme_paints_what_has_a_meaning(theme):
    assert {*theme.sgr} == {*TextRole} - {TextRole.TEXT}
    assert {*theme.code} == {*Syntax}
    assert THEMES[theme.name] is theme


def test_colours_end_where_the_text_ends():
    assert DEFAULT.paint(TextRole.ERROR, "a") == "\x1b[31ma\x1b[m"
    assert DEFAULT.paint(TextRole.ERROR, "") == ""
    assert DEFAULT.paint(TextRole.TEXT, "a") == PLAIN.paint(TextRole.ERROR, "a") == "a"
    assert DEFAULT.paint_all((TextRole.STRONG, TextRole.TEXT, TextRole.CODE), "a") == "\x1b[1;36ma\x1b[m"
    assert DEFAULT.paint_all((), "a") == "a"


@pytest.mark.parametrize("theme", THEMES.values())
def test_the_editor_has_the_same_colours(theme):
    style = theme.style()

    assert {*style} == {role.value for role in TextRole}
    Style.from_dict(style)  # raises for what prompt_toolkit does not understand


def test_colours_are_translated():
    assert DEFAULT.style()["heading"] == "bold ansicyan"
    assert DARK.style()["added-word"] == "#afffaf bg:#005f00"
    assert DARK.style()["muted"] == "#8a8a8a"
