"""Going to another branch."""

import pytest

from zotd.wire import api, reports
from zotd.wire.content import Message, Text
from zotd.wire.reports import Branch, Fork
from zottui.dialogs import tree

TREE = reports.Tree(
    "s_1",
    "fix the tests",
    [
        Branch(1, 20, 4, "make it work", time="2026-01-01T10:00:00.000Z"),
        Branch(21, 30, 2, "make it fast", at=10, time="2026-01-01T11:00:00.000Z"),
        Branch(31, 40, 6, "make it right", at=12, time="2026-01-01T12:00:00.000Z"),
    ],
    forks=[Fork("s_9", "other way", 25)],
    origin=Fork("s_0", "", 1),
)


async def browsing(fake_ui, found=TREE, *, newest=18):
    fake_ui.answers |= {
        api.OfSession: found,
        api.History: api.HistoryPage([Message("assistant", [Text("done")], "", newest)], has_more=True),
        api.Fork: api.Created(fake_ui.state.session, 0, "e"),
    }
    fake_ui.spawn(tree.browse(fake_ui))
    await fake_ui.turn()


async def test_branches_stand_below_those_that_they_go_on_from(fake_ui):
    await browsing(fake_ui)
    assert fake_ui.screen(80).splitlines()[:-1] == [
        "branches",
        "  from    s_0              at 1",
        "          make it work     4 messages  2026-01-01 10:00",
        "            make it fast   2 messages  2026-01-01 11:00",
        "  fork        other way    at 25",
        "> ● here    make it right  6 messages  2026-01-01 12:00",
    ]


@pytest.mark.parametrize(("width", "height"), [(20, 12), (40, 3), (140, 12)])
async def test_it_fits_into_any_room(fake_ui, width, height):
    await browsing(fake_ui)
    fake_ui.screen(width, height)


async def test_one_goes_back_to_the_last_message_of_a_branch(fake_ui):
    fake_ui.answers[api.Rewind] = api.FilesRestored(restored=[], kept=[], files=0, checkpoint=0, text="")
    await browsing(fake_ui)
    await fake_ui.press("up", "up", "up", "enter", "enter")
    assert fake_ui.asked[1:] == [api.History(session="s_1", at=20, limit=1), api.Rewind(session="s_1", seq=18)]
    assert fake_ui.dialogs == []


async def test_one_forks_from_there(fake_ui):
    await browsing(fake_ui)
    await fake_ui.press("enter", "down", "enter")
    assert fake_ui.asked[-1] == api.Fork(session="s_1", seq=18)
    assert fake_ui.switched == ["s_1"]


async def test_a_fork_and_the_origin_are_gone_to(fake_ui):
    await browsing(fake_ui)
    await fake_ui.press("up", "enter")
    await browsing(fake_ui)
    await fake_ui.press("up", "up", "up", "up", "enter")
    assert fake_ui.switched == ["s_9", "s_0"]


@pytest.mark.parametrize("keys", [["escape"], ["enter", "escape"]])
async def test_leaving_changes_nothing(fake_ui, keys):
    await browsing(fake_ui)
    await fake_ui.press(*keys)
    assert not any(isinstance(one, api.Rewind | api.Fork) for one in fake_ui.asked)
    assert fake_ui.dialogs == []


async def test_a_session_in_which_nothing_was_said_has_an_empty_tree(fake_ui):
    await browsing(fake_ui, reports.Tree("s_1", "", [], []))
    await fake_ui.press("enter", "escape")
    assert fake_ui.dialogs == []
