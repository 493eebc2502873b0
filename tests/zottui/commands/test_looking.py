"""Commands that look, without a terminal and without a daemon."""

from tests.zottui.desk import FakeDesk
from zottui.commands.looking import keys


async def test_keys_lists_those_of_the_editor_of_the_screen_and_of_the_viewer():
    async with FakeDesk() as desk:
        await keys(desk, "")
    here, in_viewer = desk.said
    assert "alt+enter, ctrl+j        insert a newline" in here
    assert "ctrl+t                   open the viewer: the whole conversation" in here
    assert in_viewer.startswith("in the viewer:\n")
    assert "page down, space, ctrl+f one page down" in in_viewer
