"""The files of a session come to another machine."""

import os
import shutil

import pytest

from tests.checkpoints.boxes import boxes, worked
from tests.checkpoints.conftest import git
from tests.needs import needs
from zotd.checkpoints.errors import CheckpointError
from zotd.checkpoints.shared_repository import LostCopyError


@pytest.fixture
def pair(tmp_path):
    needs("git")
    return boxes(tmp_path)


def committed(folder, branch):
    """Make a git repository with a commit of a file `a`."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", branch)
    (folder / "a").write_text("1")
    git(folder, "add", ".")
    git(folder, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "first")


async def test_a_directory_is_made_with_its_files_modes_and_links(pair):
    one, two = pair
    first = await worked(one, a="1", gone="x")
    (one.work / "gone").unlink()
    (one.work / "run").write_text("#!/bin/sh\n")
    (one.work / "run").chmod(0o755)
    (one.work / "link").symlink_to("a")
    await first.flush()
    brought = await two.sync().arrive()
    assert (brought.place, len(brought.paths)) == ("box1", 3)
    assert two.files() == {"a": "1", "run": "#!/bin/sh\n", "link": "-> a"}
    assert os.access(two.work / "run", os.X_OK)
    assert [one.name for one in two.work.parent.iterdir() if one.name.startswith(".zot")] == []


async def test_a_git_repository_comes_with_branch_commit_and_uncommitted_changes(pair):
    one, two = pair
    committed(one.work, "topic")
    await worked(one, a="2")
    await two.sync().arrive()
    assert git(two.work, "rev-parse", "HEAD") == git(one.work, "rev-parse", "HEAD")
    assert git(two.work, "branch", "--show-current") == "topic\n"
    assert git(two.work, "status", "--porcelain") == " M a\n"


async def test_only_what_has_changed_is_changed_on_the_way_back_and_changes_of_people_stay(pair):
    one, two = pair
    await worked(one, a="1", b="1", c="1")
    there = two.sync()
    await there.arrive()
    (two.work / "a").write_text("2")
    (two.work / "b").write_text("2")
    (two.work / "c").unlink()
    await there.flush()
    (one.work / "b").write_text("mine")
    (one.work / "d").write_text("mine")
    back = await one.sync().arrive()
    assert one.files() == {"a": "2", "b": "mine", "d": "mine"}
    assert (back.place, back.paths, [kept.path for kept in back.kept]) == ("box2", ["a", "c"], ["b"])


async def test_a_directory_that_never_had_the_files_is_left_alone(pair):
    one, two = pair
    await worked(one, a="1")
    two.work.mkdir()
    (two.work / "a").write_text("other")
    with pytest.raises(CheckpointError, match="is not known to have files of this session"):
        await two.sync().arrive()
    assert two.files() == {"a": "other"}


async def test_a_clean_checkout_of_the_same_commit_gets_the_uncommitted_changes(pair):
    one, two = pair
    committed(one.work, "main")
    git(two.work.parent, "clone", "-q", str(one.work), str(two.work))
    await worked(one, a="2", b="new")
    brought = await two.sync().arrive()
    assert two.files() == {"a": "2", "b": "new"}
    assert brought.paths == ["a", "b"]


async def test_a_checkout_with_changes_is_left_alone(pair):
    one, two = pair
    committed(one.work, "main")
    git(two.work.parent, "clone", "-q", str(one.work), str(two.work))
    await worked(one, a="2")
    (two.work / "a").write_text("mine")
    with pytest.raises(CheckpointError, match="not known"):
        await two.sync().arrive()
    assert two.files() == {"a": "mine"}


async def test_the_daemon_that_has_lost_the_session_cannot_push_any_more(pair):
    one, two = pair
    late = await worked(one, a="1")
    there = two.sync()
    await there.arrive()
    (one.work / "a").write_text("late")
    with pytest.raises(LostCopyError):
        await late.flush()
    (two.work / "a").write_text("2")
    await there.flush()
    await one.sync().arrive()
    assert one.files() == {"a": "late"}  # changed there since, so it stays


async def test_daemons_of_one_place_bring_nothing_to_each_other(pair):
    one, two = pair
    await worked(one, a="1")
    two.work.mkdir()
    (two.work / "a").write_text("2")
    brought = await two.sync(place="box1").arrive()
    assert (brought.place, two.files()) == ("", {"a": "2"})


@pytest.mark.parametrize("order", [("s_1", "s_2"), ("s_2", "s_1")])
async def test_two_sessions_of_a_directory_arrive_in_any_order(pair, order):
    one, two = pair
    await worked(one, "s_1", a="1")
    await worked(one, "s_2", b="2")
    for session in order:
        await two.sync(session).arrive()
    assert two.files() == {"a": "1", "b": "2"}


async def test_an_arrival_that_was_cut_is_repeated(pair):
    one, two = pair
    await worked(one, a="1")
    draft = two.work.parent / ".zot-arrival-s_1"
    draft.mkdir()
    (draft / "half").write_text("x")
    await two.sync().arrive()
    assert two.files() == {"a": "1"}


async def test_a_directory_that_was_made_before_a_crash_is_known(pair):
    one, two = pair
    await worked(one, a="1")
    await two.sync().arrive()
    again = await two.sync().arrive()
    assert (again.place, two.files()) == ("", {"a": "1"})


async def test_a_known_directory_that_was_removed_is_made_again(pair):
    one, two = pair
    await worked(one, a="1")
    await two.sync().arrive()
    shutil.rmtree(two.work)
    await two.sync().arrive()
    assert two.files() == {"a": "1"}


async def test_a_session_whose_files_are_nowhere_says_so(pair):
    one, _ = pair
    with pytest.raises(CheckpointError, match="has no files of the session"):
        await one.sync().arrive()
    assert not one.work.exists()
