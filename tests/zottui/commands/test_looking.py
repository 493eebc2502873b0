"""Commands that look, without a terminal and without a daemon."""

from tests.zottui.fake_ui import FakeUi
from zottui.commands.looking import keys


async def test_keys_lists_those_of_the_editor_of_the_screen_and_of_the_viewer():
    async with FakeUi() as fake_ui:
        await keys(fake_ui, "")
    here, in_viewer = fake_ui.said
    assert "alt+enter, ctrl+j        insert a newline" in here
    assert "ctrl+t                   open the viewer: the whole conversation" in here
    assert in_viewer.startswith("in the viewer:\n")
    assert "page down, space, ctrl+f one page down" in in_viewer
