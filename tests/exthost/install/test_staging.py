"""What a process that was killed has left behind."""

import asyncio
import signal
import subprocess
import sys

import pytest

from zotd.exthost.install import install
from zotd.exthost.installed import InstallError, load, verify
from zotd.exthost.staging import recover

HEAD = """
import asyncio, os, signal, sys
from pathlib import Path
from zotd.exthost import install, installed, staging, tree

home, source = map(Path, sys.argv[1:])

def die(*args):
    os.kill(os.getpid(), signal.SIGKILL)
"""

MOMENTS = {
    "while it copies": "tree.read = die",
    "before it is recorded": "installed.save = die",
    "before it takes its place": "staging.swap = die",
    "between the two renames": """
swap = staging.swap
def half(directory, place):
    directory.rename(place / "old")
    die()
staging.swap = half
""",
    "before it has cleaned up": "staging.Staging.discard = die",
}
"""What is replaced by death."""


@pytest.mark.parametrize("moment", MOMENTS)
async def test_an_installation_that_was_killed_is_there_or_not(moment, place):
    source = place.directory(**{"main.sh": "old"})
    await place.install("notes")
    (source / "main.sh").write_text("new")
    run = f"asyncio.run(install.install('{source}', home=home, cwd=home, env={{}}))"
    program = f"{HEAD}\n{MOMENTS[moment]}\n{run}"
    argv = [sys.executable, "-c", program, place.home, source]
    killed = await asyncio.to_thread(subprocess.run, argv, check=False)
    assert killed.returncode == -signal.SIGKILL

    recover(place.home)

    content = (place.extensions / "notes/main.sh").read_text()
    assert content == ("old" if moment in {"while it copies", "before it is recorded"} else "new")
    assert place.holds_only("notes", "notes/extension.json", "notes/main.sh")
    assert verify(place.home) == []
    await place.install("notes")
    assert (place.extensions / "notes/main.sh").read_text() == "new"


def test_there_is_nothing_to_recover_in_a_new_home(place):
    recover(place.home)
    assert list(place.home.iterdir()) == []


async def test_what_somebody_is_at_work_in_is_no_leftover(place):
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
    with pytest.raises(InstallError, match=r"other users may write it \(-rw--w--w-\): chmod 600 it"):
        load(place.home)
