"""Panels of extensions."""

from dataclasses import replace

import pytest

from tests.zottui.widgets.states import EVIL
from zotd.api.methods.panels import KEYS as KNOWN
from zotd.wire import api
from zotd.wire.events import ExtPanel
from zottui.dialogs.panel import KEYS, Panels

TASKS = ExtPanel("todo", "p1", "To do", ["one", "two 日本", "three"], "2 of 3", session="s_1")


class Shown:
    def __init__(self, fake_ui, *panels):
        self.fake_ui = fake_ui
        self.panels = Panels(fake_ui)
        self.are(*panels)

    def are(self, *panels):
        self.fake_ui.state = replace(self.fake_ui.state, panels=panels)
        self.panels.look()


SCREENS = {
    20: "To do  todo · esc c…\none\ntwo 日本\nthree\n2 of 3",
    40: "To do  todo · esc closes\none\ntwo 日本\nthree\n2 of 3",
}
SCREENS |= dict.fromkeys((80, 140), SCREENS[40])


@pytest.mark.parametrize("width", SCREENS)
def test_a_panel_has_a_title_lines_and_a_footer(fake_ui, width):
    Shown(fake_ui, TASKS)
    assert fake_ui.screen(width) == SCREENS[width]


async def test_the_extension_is_told_the_size_when_it_changes(fake_ui):
    Shown(fake_ui, TASKS)
    for width in (40, 40, 50):
        fake_ui.screen(width, 12)
        await fake_ui.turn()
    assert fake_ui.asked == [
        api.PanelResize(session="s_1", panel_id="p1", width=40, height=10),
        api.PanelResize(session="s_1", panel_id="p1", width=50, height=10),
    ]


async def test_keys_go_to_the_extension(fake_ui):
    Shown(fake_ui, TASKS)
    await fake_ui.press("down", "c-m", "x", " ")
    assert [(one.key, one.text) for one in fake_ui.asked] == [("down", ""), ("enter", ""), ("rune", "x"), ("rune", " ")]


def test_the_daemon_knows_all_keys_that_are_sent():
    assert {*KEYS, "rune", "esc"} == set(KNOWN)


async def test_keys_that_no_extension_gets_are_left_to_the_application(fake_ui):
    Shown(fake_ui, TASKS)
    for key in ("c-c", "c-d", "f2", "c-t"):
        assert not await fake_ui.press(key)
    assert fake_ui.asked == []


async def test_escape_closes_the_panel_here_and_there(fake_ui):
    shown = Shown(fake_ui, TASKS)
    await fake_ui.press("escape")
    assert fake_ui.dialogs == []
    assert fake_ui.asked == [api.PanelClose(session="s_1", panel_id="p1")]
    shown.are(TASKS)
    assert fake_ui.dialogs == []
    shown.are()
    assert fake_ui.said == []


def test_a_panel_whose_extension_is_gone_closes_with_a_note(fake_ui):
    shown = Shown(fake_ui, TASKS)
    shown.are()
    assert fake_ui.dialogs == []
    assert fake_ui.said == ["todo closed its panel"]


def test_a_panel_that_is_drawn_again_stays_where_it_is(fake_ui):
    shown = Shown(fake_ui, TASKS)
    dialog = fake_ui.dialog
    shown.are(ExtPanel("todo", "p1", "To do", ["four"], "", session="s_1"))
    assert fake_ui.dialogs == [dialog]
    assert fake_ui.screen(40) == "To do  todo · esc closes\nfour"


@pytest.mark.parametrize("height", range(5))
def test_no_panel_steers_the_terminal_or_leaves_its_room(fake_ui, height):
    Shown(fake_ui, ExtPanel(EVIL, "p1", EVIL, [EVIL] * 20, EVIL))
    fake_ui.screen(10, height)
