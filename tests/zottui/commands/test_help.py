"""`/help`, without a terminal and without a daemon."""

from tests.zottui.fake_ui import FakeUi
from zotd.client.columns import width_of
from zottui.choice import ListChoice
from zottui.commands import COMMANDS

WORDS = "how to extend it: give yourself a new tool, add a slash command, a guard or a panel, or find out why one fails"


async def test_each_command_takes_one_line_of_80_columns_and_says_where_it_comes_from():
    async with FakeUi() as fake_ui:
        fake_ui.learnt = [
            ListChoice("skill:write-zot-extension", WORDS, "skill"),
            ListChoice("a-command-with-quite-a-long-name-of-its-own", "漢字" * 40, "an-extension"),
            ListChoice("reload-ext", "restarts the extensions"),
        ]
        (command,) = [each for each in COMMANDS if each.name == "help"]
        await command.run(fake_ui, "")
    rows = fake_ui.said[0].split("\n")
    assert len(rows) == len(COMMANDS) + 3
    assert [row for row in rows if not row.startswith("/") or width_of(f"· {row}") > 79] == []
    skill, long, ours = rows[-3:]
    assert skill.endswith("… (skill)")
    assert long.endswith("… (an-extension)")
    assert ours.endswith("restarts the extensions")
