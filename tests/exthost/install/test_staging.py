"""What a process that was killed has left behind."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from zotd.exthost.install import install
from zotd.exthost.installed import InstallError, load
from zotd.exthost.staging import recover

PROGRAM = Path(__file__).with_name("killed.py")


async def test_an_installation_that_is_killed_at_any_moment_is_there_or_not(place):
    source = place.directory(**{"main.sh": "old"})
    await place.install("notes")
    (source / "main.sh").write_text("new")
    scratch = place.path / "scratch"
    scratch.mkdir()
    argv = [sys.executable, PROGRAM, place.home, source, scratch]
    done = await asyncio.to_thread(subprocess.run, argv, check=True, stdout=subprocess.PIPE)
    found = json.loads(done.stdout)

    assert [one for one in found if one["trouble"]] == []
    whole = [".installing", "notes", "notes/extension.json", "notes/main.sh"]
    assert [one["there"] for one in found if one["there"] != whole] == []
    contents = [one["content"] for one in found]
    switch = contents.index("new")
    assert contents == ["old"] * switch + ["new"] * (len(found) - switch)
    assert 0 < switch < len(found) - 3


def test_there_is_nothing_to_recover_in_a_new_home(place):
    recover(place.home)
    assert list(place.home.iterdir()) == []


async def test_a_directory_in_use_is_no_leftover(place):
    place.directory()

    def look_around(words):
        recover(place.home)

    await install("notes", home=place.home, cwd=place.cwd, env=place.env, progress=look_around)
    assert place.started() == ["notes"]


async def test_a_record_that_cannot_be_read_stops_everything(place):
    place.directory()
    (place.home / "extensions.json").write_text('{"extensions": []}')
    with pytest.raises(InstallError, match=r"extensions\.json is damaged; repair it, or remove it"):
        await place.install("notes")
    assert not (place.extensions / "notes").exists()


async def test_a_record_that_others_may_write_is_not_believed(place):
    place.directory()
    await place.install("notes")
    (place.home / "extensions.json").chmod(0o622)
    with pytest.raises(InstallError, match=r"other users can write it \(-rw--w--w-\): chmod 600 it"):
        load(place.home)
