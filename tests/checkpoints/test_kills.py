"""kill -9 at every point of a restore: when it is finished, the workspace is in one of its two states."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkpoints.conftest import git
from zotd.checkpoints.errors import CheckpointError
from zotd.checkpoints.folders import JOURNAL, unfinished

ROOT = Path(__file__).parent.parent.parent


def prepare(place):
    """A workspace in its second state; returns the checkpoint of the first one."""
    place.write("changed", "one")
    place.write("dir/mode", "same", mode=0o755)
    place.write("gone/deep/file", "one")
    place.write("kind", "file")
    (place.work / "link").symlink_to("changed")
    first, before = place.record(), place.files()
    place.write("changed", "two")
    place.write("dir/mode", "same")
    for path in ("gone/deep/file", "link", "kind"):
        (place.work / path).unlink()
    place.write("kind/inner", "now a directory")
    place.write("new/file", "new")
    place.record()
    return first, before


def killed(place, first, point):
    """Restore in a process that kills itself at this point; False if it came to its end before."""
    command = [sys.executable, "-m", "tests.checkpoints.killed", place.work, place.home, str(first.number), str(point)]
    env = {"HOME": str(place.root / "user"), "PATH": os.environ["PATH"]}
    code = subprocess.run(command, cwd=ROOT, env=env, check=False).returncode
    assert code in {0, -signal.SIGKILL}
    return code != 0


def test_a_restore_that_was_killed_is_finished_or_was_not_begun(place):
    first, before = prepare(place)
    after = place.files()
    seen, point = set(), 1
    while killed(place, first, point):
        begun = bool(unfinished(str(place.home)))
        place.checkpoints().finish()
        now = place.files()
        assert now == (before if begun else now)
        assert now in (before, after)
        seen.add("finished" if begun else "not begun" if now == after else "done")
        assert not unfinished(str(place.home))
        place.checkpoints().restore(place.checkpoints().find(2), force=True)
        assert place.files() == after
        point += 1
    assert seen == {"finished", "not begun", "done"}
    assert place.files() == before
    assert point > 12


def test_what_the_user_changed_after_the_kill_stays(place):
    first, before = prepare(place)
    assert killed(place, first, 4)  # after the journal, before most of the changes
    place.write("changed", "the user's, after the crash")
    place.checkpoints().finish()
    assert place.files() == {**before, "changed": ("-", b"the user's, after the crash")}


def test_no_temporary_file_stays_behind(place):
    first, before = prepare(place)
    point = 1
    while killed(place, first, point):
        drafts = [path for path in place.files() if ".zot-restore-" in path]
        if drafts:
            changed = drafts[0].rpartition("/")[0]
            assert changed in {"", "dir", "gone/deep"}
            for path in ("changed", "kind/inner"):
                if (place.work / path).exists():
                    place.write(path, "the user's")  # so the finish does not replace it
        place.checkpoints().finish()
        assert [path for path in place.files() if ".zot-restore-" in path] == []
        place.checkpoints().restore(place.checkpoints().find(2), force=True)
        point += 1
    assert place.files() == before


def test_every_command_finishes_what_was_interrupted(place):
    first, before = prepare(place)
    assert killed(place, first, 3)
    assert unfinished(str(place.home)) == [str(place.work)]
    place.record()
    assert place.files() == before
    assert unfinished(str(place.home)) == []


def test_a_damaged_journal_is_named_and_changes_nothing(place):
    prepare(place)
    folder = Path(place.checkpoints().repository.folder)
    (folder / JOURNAL).write_text("{")
    before = place.files()
    with pytest.raises(CheckpointError, match=f"{JOURNAL} cannot be read"):
        place.record()
    assert place.files() == before


def test_the_users_repository_is_not_touched(place):
    git(place.work, "init", "-q")
    git(place.work, "config", "user.name", "t")
    git(place.work, "config", "user.email", "t@example.org")
    place.write("tracked", "one")
    git(place.work, "add", "tracked")
    git(place.work, "commit", "-qm", "first")
    place.write("tracked", "stashed")
    git(place.work, "stash")
    place.write("staged", "staged")
    git(place.work, "add", "staged")

    def inside():
        return place.files(place.work / ".git")

    first, before = prepare(place)
    was = inside()
    point = 1
    while killed(place, first, point):
        place.checkpoints().finish()
        point += 3
    place.checkpoints().restore(first)
    assert inside() == was
    assert place.files() == {**before}
    git(place.work, "fsck", "--strict")
