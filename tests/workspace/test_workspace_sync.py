"""When the files of a session are pushed, and what is told of a failure."""

import asyncio

import pytest

from tests.checkpoints.boxes import boxes, worked
from tests.checkpoints.conftest import git
from tests.needs import needs
from zotd.checkpoints.errors import CheckpointError


@pytest.fixture
def site(tmp_path):
    needs("git")
    return boxes(tmp_path)[0]


def stored(tmp_path, path="a"):
    return git(tmp_path / "shared.git", "show", f"refs/zot/files/s_1:files/{path}")


async def ended(site):
    while site.tasks:
        await site.tasks.pop(0)


async def test_a_change_is_pushed_in_the_background(site, tmp_path):
    sync = await worked(site, a="1")
    (site.work / "a").write_text("2")
    sync.changed()
    await ended(site)
    assert stored(tmp_path) == "2"


async def test_changes_during_a_push_are_pushed_after_it_by_the_same_task(site, tmp_path):
    sync = await worked(site, a="1")
    for number in range(5):
        (site.work / "a").write_text(f"{number}")
        sync.changed()
        await asyncio.sleep(0)
    assert len(site.tasks) == 1
    await ended(site)
    assert stored(tmp_path) == "4"


async def test_a_failure_is_told_once_and_at_the_next_run_and_ends_with_the_next_push(site, tmp_path):
    sync = await worked(site, a="1")
    shared = tmp_path / "shared.git"
    shared.rename(tmp_path / "away")
    for number in range(2):
        (site.work / "a").write_text(f"2{number}")
        sync.changed()
        await ended(site)
    (told,) = site.told
    assert told.startswith(f"the files of the session are not stored in {shared}: git ")
    sync.retry()
    await ended(site)
    assert len(site.told) == 2
    (tmp_path / "away").rename(shared)
    sync.retry()
    await ended(site)
    assert site.told[-1] == "the files of the session are stored in the shared repository again"
    assert stored(tmp_path) == "21"


async def test_a_session_that_has_not_run_since_it_was_opened_is_pushed_before_it_leaves(site, tmp_path):
    await worked(site, a="1")
    (site.work / "a").write_text("not pushed before the daemon ended")
    await site.sync().flush()
    assert stored(tmp_path) == "not pushed before the daemon ended"


async def test_files_of_another_place_are_not_replaced_by_a_session_that_has_not_run_here(site, tmp_path):
    await worked(site, a="1")
    other = type(site)(tmp_path, "box3", str(tmp_path / "shared.git"))
    other.work.mkdir()
    (other.work / "a").write_text("of box3")
    await other.sync().flush()
    assert stored(tmp_path) == "1"


async def test_what_is_due_is_pushed_before_the_session_leaves_memory(site, tmp_path):
    sync = await worked(site, a="1")
    (site.work / "a").write_text("2")
    sync.changed()
    await sync.settle()
    assert stored(tmp_path) == "2"
    await ended(site)


async def test_a_failure_does_not_keep_a_session_in_memory(site, tmp_path):
    sync = await worked(site, a="1")
    (tmp_path / "shared.git").rename(tmp_path / "away")
    (site.work / "a").write_text("2")
    sync.changed()
    await sync.settle()
    await ended(site)
    with pytest.raises(CheckpointError, match="git "):
        await sync.flush()


async def test_files_of_a_deleted_session_are_removed_also_if_the_directory_is_gone(site, tmp_path):
    sync = await worked(site, a="1")
    (site.work / "a").unlink()
    site.work.rmdir()
    sync.forget()
    await ended(site)
    assert git(tmp_path / "shared.git", "for-each-ref") == ""
