import asyncio
import os
import select

import pytest

from zotd.process import background
from zotd.process.background import start_in_background
from zotd.process.bounded_output import BoundedOutput
from zotd.process.orphan_reaper import OrphanReaper

ENV = {"PATH": os.environ["PATH"]}


class Place:
    """Starts commands, whose processes all have ended at the end of the test."""

    def __init__(self, folder, tasks):
        self.folder = folder
        self.reaper = OrphanReaper(folder, lambda name, work: tasks.create_task(work, name=name))
        self.came = asyncio.Event()
        self._tasks = tasks

    def start(self, command):
        """The running command and the task that follows it."""
        running = start_in_background(
            ["/bin/sh", "-c", command],
            cwd=str(self.folder),
            env=ENV,
            output=BoundedOutput(self.folder / "out", 1_000_000),
            claim=self.reaper.claim("a job"),
            jail=None,
            came=lambda _: self.came.set(),
        )
        return running, self._tasks.create_task(running.follow())

    def entries(self):
        return [path for host in (self.folder / "run" / "children").iterdir() for path in host.iterdir()]


@pytest.fixture
async def place(tmp_path):
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        place = Place(tmp_path, tasks)
        yield place
        await place.reaper.close()


async def is_gone(pidfd):
    """Whether the process has ended, as soon as it has: a killed one still exists for a moment."""
    try:
        ready, _, _ = await asyncio.to_thread(select.select, [pidfd], [], [], 60)
    finally:
        os.close(pidfd)
    return bool(ready)


async def test_it_runs_without_input_and_gives_its_exit_code_and_output(place):
    command, followed = place.start("cat; echo one; echo two >&2; exit 3")
    await followed
    assert command.code == 3
    assert command.output.read(0, 100).data == b"one\ntwo\n"


async def test_what_it_leaves_in_its_group_ends_with_it(place):
    for name in ("pid", "go"):
        os.mkfifo(place.folder / name)
    # Without its environment, so that it is not found by the mark.
    command, followed = place.start("env -i /bin/sh -c 'echo $$ > pid; exec sleep 600' & read line < go")
    left = os.pidfd_open(int(await asyncio.to_thread((place.folder / "pid").read_text)))
    await asyncio.to_thread((place.folder / "go").write_text, "on\n")
    await followed
    assert command.code == 0
    assert await is_gone(left)


async def test_late_output_of_its_group_is_kept(place):
    command, followed = place.start("(echo late; exec sleep 600) & exit 0")
    await followed
    assert command.output.read(0, 100).data in {b"late\n", b""}
    assert command.code == 0


async def test_a_stop_ends_what_ignores_it(place):
    command, followed = place.start("trap '' TERM; echo on; while :; do sleep 600; done")
    await place.came.wait()
    await command.stop()
    await followed
    assert command.code == 137


async def test_a_stop_lets_it_end_by_itself(place, monkeypatch):
    monkeypatch.setattr(background, "GRACE_S", 60.0)  # no machine is so busy
    command, followed = place.start("trap 'echo over; exit 7' TERM; echo on; while :; do sleep 0.01; done")
    await place.came.wait()
    await command.stop()
    await followed
    assert command.code == 7
    assert command.output.read(0, 100).data.endswith(b"over\n")


async def test_it_is_in_the_ledger_until_nothing_of_it_is_left(place):
    _, followed = place.start("echo on; exec sleep 600")
    await place.came.wait()
    assert len(place.entries()) == 1
    followed.cancel()
    await asyncio.wait([followed])
    await place.reaper.close()
    assert not (place.folder / "run" / "children").exists() or place.entries() == []


async def test_one_that_cannot_be_started_leaves_no_entry(place):
    with pytest.raises(FileNotFoundError):
        start_in_background(
            ["/no/such/shell"],
            cwd=str(place.folder),
            env=ENV,
            output=BoundedOutput(place.folder / "out", 1_000_000),
            claim=place.reaper.claim("a job"),
            jail=None,
            came=lambda _: None,
        )
    assert place.entries() == []
