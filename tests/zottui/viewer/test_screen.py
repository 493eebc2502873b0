"""The viewer on the alternate screen, with prompt_toolkit and keys from a pipe."""

import asyncio
import subprocess
import sys

import pytest
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from tests.zottui.viewer.conversations import Stored, call, fake_ui, lines, result, talk, user, zot
from zottui import viewer
from zottui.blocks import CodeLines, Rule
from zottui.viewer.screen import shown
from zottui.viewer.visit import begun

WHEEL_UP = "\x1b[<64;10;5M"
CLICK = "\x1b[<0;10;2M"


class Output(DummyOutput):
    def get_size(self):
        return Size(rows=10, columns=80)


async def left_with(stored, keys, **state):
    """Return the fake application and the cursor's position after these keys; the last one leaves the viewer."""
    async with fake_ui(stored, **state) as place:
        visit = await begun(place, turn=None, session=None, seq=None, call=None)
        assert visit is not None
        with create_pipe_input() as pipe:
            pipe.send_text(keys)
            async with asyncio.timeout(60):
                await shown(place, visit, keyboard=pipe, display=Output())
        return place, visit.reader


@pytest.mark.parametrize("key", ["q", "\x14", "\x03", "\x1b"])
async def test_these_keys_leave_it_and_nothing_is_printed(key):
    place, _ = await left_with(Stored(talk(3)), key)
    assert place.suspensions == 1
    assert place.printed == []


async def test_keys_that_prompt_toolkit_knows_by_name_are_ours():
    _, reader = await left_with(Stored(talk(12)), "\x1b[5~\x10\x1b[A\x1b[Hq")
    assert reader.seq == 1


async def test_the_mouse_moves_it():
    _, reader = await left_with(Stored(talk(12)), f"{WHEEL_UP * 3}{CLICK}q")
    assert reader.seq == 31


async def test_letters_are_typed_behind_the_slash():
    _, reader = await left_with(Stored(talk(12)), "/question 4q\x7f\rq")
    assert reader.seq == 13


async def test_an_output_is_printed_when_it_is_left():
    stored = Stored(
        [user(1, "go"), zot(3, "", call("c", command="make")), result(5, "c", lines(30)), *talk(3, first=4)]
    )
    place, _ = await left_with(stored, "/make\r[q")
    assert place.printed == [
        Rule("output of bash"),
        CodeLines("", tuple(lines(30).split("\n")), opens=True, closes=True),
    ]


async def test_the_external_editor_gets_the_loaded_messages_and_the_viewer_reopens(tmp_path):
    seen = tmp_path / "seen"
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\ncat $1 > {seen}\n")
    editor.chmod(0o755)
    async with fake_ui(Stored(talk(3))) as place:
        place.env = {"EDITOR": str(editor), "PATH": "/usr/bin:/bin"}
        visit = await begun(place, turn=None, session=None, seq=None, call=None)
        assert visit is not None
        with create_pipe_input() as pipe:
            pipe.send_text("vq")  # the second key waits for the viewer to be back
            async with asyncio.timeout(60):
                await shown(place, visit, keyboard=pipe, display=Output())
        assert place.suspensions == 3
    assert seen.read_text().startswith("question 1\n\nanswer 1\n\nquestion 2")


async def test_without_a_session_there_is_nothing_to_show():
    async with fake_ui(Stored([])) as place:
        place.state = type(place.state)()
        await viewer.view(place)
        assert place.said == ["no session yet: still connecting to zotd"]


def test_opening_the_client_imports_nothing_of_it():
    code = "import sys, zottui.viewer; print(sorted(name for name in sys.modules if name.startswith('zottui.viewer')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "['zottui.viewer']\n"
