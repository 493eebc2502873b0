"""Copies in the shared repository: whose push is refused, and what becomes of the user's commits."""

import shutil

import pytest

from tests.checkpoints.boxes import boxes, worked
from tests.checkpoints.conftest import git
from tests.needs import needs
from zotd.checkpoints.errors import CheckpointError
from zotd.checkpoints.shared_repository import LostCopyError

AUTHOR = ("-c", "user.name=t", "-c", "user.email=t@t")


@pytest.fixture
def pair(tmp_path):
    needs("git")
    return boxes(tmp_path)


def commit(site, message):
    git(site.work, "add", ".")
    git(site.work, *AUTHOR, "commit", "-q", "-m", message)


async def at_both(one, two):
    """A session in a git repository with a commit, which is at the second site now."""
    one.work.mkdir()
    git(one.work, "init", "-q", "-b", "main")
    (one.work / "a").write_text("1")
    commit(one, "first")
    await worked(one, a="1")
    there = two.sync()
    await there.arrive()
    (two.work / "a").write_text("2")
    commit(two, "second")
    return there


def subjects(site):
    return git(site.work, "log", "--format=%s").split()


async def test_a_claim_refuses_late_pushes_also_if_nothing_was_brought(pair):
    one, two = pair
    late = await worked(one, a="1")
    shutil.copytree(one.work, two.work)
    await two.sync(place="box1").arrive()
    (one.work / "a").write_text("late")
    with pytest.raises(LostCopyError):
        await late.flush()


async def test_a_directory_that_made_the_newest_copy_pushes_nothing_when_it_is_opened_again(pair, tmp_path):
    one, _ = pair
    await worked(one, a="1")
    before = git(tmp_path / "shared.git", "for-each-ref")
    await one.sync().arrive()
    assert git(tmp_path / "shared.git", "for-each-ref") == before


async def test_a_branch_moves_on_if_nobody_has_changed_the_repository(pair):
    one, two = pair
    there = await at_both(one, two)
    await there.flush()
    brought = await one.sync().arrive()
    assert (brought.commits, subjects(one)) == ("", ["second", "first"])
    assert git(one.work, "status", "--porcelain") == ""
    git(one.work, "fsck", "--strict")


async def test_a_new_branch_is_checked_out(pair):
    one, two = pair
    there = await at_both(one, two)
    git(two.work, "checkout", "-q", "-b", "topic")
    await there.flush()
    await one.sync().arrive()
    assert git(one.work, "branch", "--show-current") == "topic\n"
    assert git(one.work, "log", "--format=%s", "main") == "first\n"


async def test_a_branch_with_commits_of_people_stays_and_the_others_are_beside_it(pair):
    one, two = pair
    there = await at_both(one, two)
    await there.flush()
    git(one.work, *AUTHOR, "commit", "-q", "--allow-empty", "-m", "mine")
    brought = await one.sync().arrive()
    assert subjects(one) == ["mine", "first"]
    command = brought.commits.split("`")[1].split()
    assert git(one.work, *command[1:], "--format=%s") == "second\nfirst\n"


async def test_a_branch_stays_while_changes_are_staged(pair):
    one, two = pair
    there = await at_both(one, two)
    await there.flush()
    (one.work / "b").write_text("mine")
    git(one.work, "add", "b")
    brought = await one.sync().arrive()
    assert "stays at" in brought.commits
    assert git(one.work, "diff", "--cached", "--name-only") == "b\n"


async def test_hooks_and_programs_of_the_users_repository_are_not_run(pair, tmp_path):
    one, two = pair
    there = await at_both(one, two)
    await there.flush()
    for name in ("reference-transaction", "post-checkout", "post-index-change"):
        hook = one.work / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        hook.chmod(0o755)
    git(one.work, "config", "core.fsmonitor", f"touch {tmp_path}/ran")
    assert (await one.sync().arrive()).commits == ""
    assert not (tmp_path / "ran").exists()


async def test_a_shallow_clone_is_brought_as_a_directory_without_commits(pair):
    one, two = pair
    one.work.mkdir()
    git(one.work, "init", "-q", "-b", "main")
    (one.work / "a").write_text("1")
    commit(one, "first")
    (one.work / "a").write_text("2")
    commit(one, "second")
    shutil.move(one.work, one.work.parent / "origin")
    git(one.work.parent, "clone", "-q", "--depth", "1", f"file://{one.work.parent}/origin", str(one.work))
    await worked(one)
    await two.sync().arrive()
    assert (two.files(), (two.work / ".git").exists()) == ({"a": "2"}, False)


async def test_what_is_no_copy_of_zot_is_refused(pair, tmp_path):
    one, two = pair
    await worked(one, a="1")
    shared = tmp_path / "shared.git"
    tree = git(shared, "write-tree").strip()
    other = git(shared, *AUTHOR, "commit-tree", "-m", "other", tree).strip()
    git(shared, "update-ref", "refs/zot/files/s_1", other)
    with pytest.raises(CheckpointError, match="is no copy of files that zot has made"):
        await two.sync().arrive()
