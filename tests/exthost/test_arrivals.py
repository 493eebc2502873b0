"""Directories that come and go are told, on Linux."""

import asyncio
import threading
from pathlib import Path

import psutil
import pytest

from zotd.exthost.arrivals import Arrivals
from zotd.tasks import contained


class Told:
    """Counts how often something changed."""

    def __init__(self):
        self.times = 0
        self._changed = asyncio.Event()

    def __call__(self):
        self.times += 1
        self._changed.set()

    async def again(self):
        async with asyncio.timeout(60):
            await self._changed.wait()
        self._changed.clear()


def watches():
    """How many there are in this process."""
    infos = [path.read_text() for path in Path("/proc/self/fdinfo").iterdir() if path.exists()]
    return sum(info.count("inotify wd") for info in infos)


@pytest.fixture
async def arrivals():
    async with asyncio.TaskGroup() as tasks:

        def spawn(name, work):
            _ = contained(tasks, name, work)

        arrivals = Arrivals(spawn)
        yield arrivals
        arrivals.close()


async def test_a_directory_is_told_however_deep_it_comes_and_when_it_goes(arrivals, tmp_path):
    wanted, told = tmp_path / "a" / "b" / "tools", Told()
    await arrivals.watch([wanted, tmp_path / "never"], told)
    wanted.mkdir(parents=True)
    await told.again()
    wanted.rename(tmp_path / "elsewhere")
    await told.again()
    (tmp_path / "elsewhere").rename(wanted)
    await told.again()
    assert told.times == 3


async def test_existing_and_unrelated_files_are_not_reported(arrivals, tmp_path):
    there, told, other = tmp_path / "there", Told(), Told()
    there.mkdir()
    await arrivals.watch([there], told)
    await arrivals.watch([tmp_path / "other"], other)
    (tmp_path / "file").write_text("x")
    (there / "inside").mkdir()
    (tmp_path / "other").mkdir()
    await other.again()
    assert told.times == 0


async def test_who_is_forgotten_is_told_no_more_and_others_in_the_same_place_are(arrivals, tmp_path):
    gone, stays = Told(), Told()
    await arrivals.watch([tmp_path / "tools"], gone)
    await arrivals.watch([tmp_path / "tools"], stays)
    arrivals.forget(gone)
    arrivals.forget(gone)
    (tmp_path / "tools").mkdir()
    await stays.again()
    assert gone.times == 0


async def test_nothing_is_left_watched_and_a_late_wish_opens_nothing(arrivals, tmp_path):
    fds = psutil.Process().num_fds()
    told = Told()
    await arrivals.watch([tmp_path / "tools"], told)
    assert watches() == 1
    arrivals.forget(told)
    assert watches() == 0
    before = set(threading.enumerate())
    arrivals.close()
    await arrivals.watch([tmp_path / "tools"], told)
    for closing in set(threading.enumerate()) - before:
        closing.join()
    assert psutil.Process().num_fds() == fds
