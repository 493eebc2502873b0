"""The index of a directory: who waits for it, who shares it, and when it is made anew."""

import asyncio

import pytest

from zotd.workspace.file_index import FRESH_S, MAX_DIRECTORIES, SLICE, Files, PathIndex
from zotd.workspace.file_listing import FileListing


class Desk:
    """Indices with a clock that somebody sets, and the work that they have begun."""

    def __init__(self, tasks, env):
        self.now = 0.0
        self.begun = []
        self._env = env
        self._tasks = tasks
        self.files = Files(self._spawn, lambda: self.now)

    def _spawn(self, name, work):
        self.begun.append(self._tasks.create_task(work, name=name))

    async def find(self, folder, typed=""):
        return (await self.files.find(str(folder), self._env, typed))[0]

    async def listed(self):
        """Until nothing is being listed."""
        if self.begun:
            await asyncio.wait(self.begun)


@pytest.fixture
async def desk(tmp_path):
    async with asyncio.TaskGroup() as tasks:
        desk = Desk(tasks, {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})
        yield desk
        await desk.listed()


async def test_an_index_that_is_old_answers_while_a_new_one_is_made(desk, tmp_path):
    (tmp_path / "first.py").touch()
    assert await desk.find(tmp_path) == ["first.py"]
    (tmp_path / "second.py").touch()
    assert await desk.find(tmp_path) == ["first.py"]
    assert len(desk.begun) == 1
    desk.now += FRESH_S
    assert await desk.find(tmp_path) == ["first.py"]
    await desk.listed()
    assert await desk.find(tmp_path) == ["first.py", "second.py"]


async def test_those_who_ask_at_once_wait_for_one_listing(desk, tmp_path):
    (tmp_path / "a.py").touch()
    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(desk.find(tmp_path, "a")) for _ in range(5)]
    assert [one.result() for one in asked] == [["a.py"]] * 5
    assert len(desk.begun) == 1


async def test_many_who_ask_at_once_have_their_turns_one_after_the_other(desk, tmp_path):
    for number in range(3 * SLICE):
        (tmp_path / str(number)).touch()
    await desk.find(tmp_path)
    turns = 0
    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(desk.find(tmp_path, "z")) for _ in range(20)]
        while not all(one.done() for one in asked):
            turns += 1
            await asyncio.sleep(0)
    assert turns >= 3 * len(asked)


async def test_a_directory_that_is_gone_has_no_files(desk, tmp_path):
    assert await desk.find(tmp_path / "gone") == []


async def test_only_the_directories_used_last_are_remembered(desk, tmp_path):
    for number in range(MAX_DIRECTORIES + 1):
        (tmp_path / str(number)).mkdir()
        await desk.find(tmp_path / str(number))
    await desk.find(tmp_path / "1")
    assert len(desk.begun) == MAX_DIRECTORIES + 1
    await desk.find(tmp_path / "0")
    assert len(desk.begun) == MAX_DIRECTORIES + 2


def test_an_index_has_directories_once_and_shorter_paths_first():
    index = PathIndex.of(FileListing(["b/c/d.py", "b/c/e.py", "a.py", "module/"], b"", is_cut=False))
    assert index.paths == ["/b/", "/a.py", "/b/c/", "/module/", "/b/c/d.py", "/b/c/e.py"]


def test_forged_paths_with_very_many_directories_do_not_fill_the_memory():
    index = PathIndex.of(FileListing([f"{number}/" + "a/" * 500 + "b" for number in range(500)], b"", is_cut=False))
    assert sum(map(len, index.paths)) < 10 * 1024 * 1024
