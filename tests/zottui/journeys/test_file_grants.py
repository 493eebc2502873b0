"""A command is refused a directory outside of its jail: a person opens it on the terminal, and the model tries again."""

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.needs import needs
from tests.zottui.journeys.deciding import decide
from tests.zottui.journeys.test_undo import type_line
from tests.zottui.journeys.world import rests
from zotd.testing.script import CallPart, TextPart


def test_a_directory_is_opened_for_the_session_and_the_command_ends_well_the_second_time(world):
    needs("bwrap")
    with TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name).resolve()
        command = f"echo run >> runs; touch {folder}/new"
        call = CallPart("bash", {"command": command})
        world.model.says([call], [call], [TextPart(["it is there"])])
        zot = world.zot("--mode", "workspace")
        type_line(zot, "go")
        zot.wait("files needs you")
        zot.wait("A command was refused to change")
        zot.wait("It has ended and is not run again by zot")
        assert not (folder / "new").exists()
        decide(zot, "s", "it is there")
        rests(zot)
        assert (folder / "new").exists()
    assert "A person has allowed it" in world.model.seen()
    assert (world.cwd / "runs").read_text() == "run\nrun\n"
