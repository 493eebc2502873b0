"""A checkpoint that looks only at what has changed is the same as one that looks at everything."""

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.checkpoints.conftest import LIMITS, git
from tests.checkpoints.twins import STEP, Twins
from tests.needs import needs
from zotd.checkpoints import increment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="directories are watched on Linux only")


@pytest.fixture
def twins(tmp_path):
    needs("git")
    with Twins(tmp_path) as made:
        yield made


def settled(twins, *files):
    """Record until only changes are looked at, with these files."""
    for path in files:
        twins.place.write(path, path)
    while not twins.record():
        pass


def test_the_third_recording_looks_only_at_what_has_changed(twins):
    twins.place.write("a", "one")
    assert [twins.record() for _ in range(4)] == [False, False, True, True]
    twins.place.write("a", "two")
    assert twins.record()


def test_a_new_directory_is_looked_at_with_all_that_is_in_it(twins):
    settled(twins, "a")
    twins.place.write("new/deep/b", "b")
    assert twins.record()
    twins.place.write("new/deep/b", "more")
    assert twins.record()
    (twins.work / "new").rename(twins.work / "moved")
    twins.place.write("moved/deep/b", "again")
    assert twins.record()
    shutil.rmtree(twins.work / "moved")
    assert twins.record()


def test_an_ignored_directory_is_never_entered(twins):
    settled(twins, ".gitignore")
    twins.place.write(".gitignore", "node_modules/\n")
    settled(twins)
    for number in range(increment.MOST_PATHS + 1):
        twins.place.write(f"node_modules/{number}", "x")
    assert twins.record()


def test_an_ignored_file_goes_with_its_directory(twins):
    twins.place.write(".gitignore", "*.log\n")
    settled(twins, "a/b", "a/b.log")
    (twins.work / "a").rename(twins.work / "moved")
    assert twins.record()
    shutil.rmtree(twins.work / "moved")
    assert twins.record()


def test_a_file_that_becomes_executable_or_a_link_is_recorded(twins):
    settled(twins, "a", "b")
    (twins.work / "a").chmod(0o755)
    (twins.work / "b").unlink()
    (twins.work / "b").symlink_to("a")
    assert twins.record()


def test_a_file_that_is_still_open_is_recorded(twins):
    settled(twins, "a")
    with (twins.work / "a").open("a") as file:
        file.write("more")
        file.flush()
        assert twins.record()


def test_a_file_that_was_moved_away_is_gone(twins):
    settled(twins, "a", "b")
    (twins.work / "a").rename(twins.root / "away")
    assert twins.record()


def test_a_recorded_file_that_becomes_too_large_is_left_out(twins):
    settled(twins, ".gitignore", "a", "b")
    twins.place.write("a", "x" * (LIMITS.file_bytes + 1))
    assert not twins.record()
    twins.place.write(".gitignore", "a\n")
    settled(twins)


def test_a_file_may_become_a_directory_and_a_directory_a_file(twins):
    settled(twins, "a", "b/c", "a-b", "a.b")
    (twins.work / "a").unlink()
    twins.place.write("a/inner", "inner")
    shutil.rmtree(twins.work / "b")
    twins.place.write("b", "file")
    assert twins.record()


def test_a_recorded_file_that_becomes_a_pipe_is_left_out(twins):
    settled(twins, "a", "b")
    (twins.work / "a").unlink()
    os.mkfifo(twins.work / "a")
    settled(twins)


def test_a_directory_that_is_not_ignored_any_more_is_watched(twins):
    twins.place.write(".gitignore", "build/\n")
    settled(twins, "build/a")
    twins.place.write(".gitignore", "")
    settled(twins)
    twins.place.write("build/a", "changed")
    assert twins.record()


def test_ignore_rules_above_the_directory_are_followed(twins):
    git(twins.root, "init", "-q")
    settled(twins, "a")
    (twins.root / ".gitignore").write_text("*.log\n")
    twins.place.write("a.log", "new")
    assert not twins.record()


def test_a_file_is_recorded_under_all_its_names(twins):
    twins.place.write("a", "one")
    os.link(twins.work / "a", twins.work / "b")
    settled(twins)
    with (twins.work / "b").open("a") as file:
        file.write("two")
    assert not twins.record()


def test_changed_ignore_rules_are_followed(twins):
    settled(twins, "a.log", "b.log")
    twins.place.write(".gitignore", "*.log\n")
    twins.place.write("c.log", "new")
    assert not twins.record()
    (twins.work / "a.log").unlink()  # recorded, and ignored: the only kind of file that a scan is needed for
    assert not twins.record()


def test_a_directory_that_becomes_a_repository_of_its_own_is_left_out_and_back_again(twins):
    settled(twins, "a", "inner/file")
    git(twins.work / "inner", "init", "-q")
    shutil.rmtree(twins.work / "inner" / ".git")
    settled(twins)
    twins.place.write("other/file", "theirs")
    git(twins.work / "other", "init", "-q")
    settled(twins)
    twins.place.write("a", "changed")
    assert twins.record()
    shutil.rmtree(twins.work / "other" / ".git")
    assert not twins.record()


def test_more_changes_than_the_kernel_remembers_are_not_missed(twins):
    settled(twins, "a", "b")
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text(encoding="ascii"))
    for number in range(most + 1):
        os.utime(twins.work / "ab"[number % 2])
    twins.place.write("a", "changed")
    assert not twins.record()
    settled(twins)


def test_a_directory_that_was_replaced_is_looked_at_as_a_whole(twins):
    settled(twins, "a", "b")
    twins.work.rename(twins.root / "old")
    twins.place.write("a", "other")
    assert not twins.record()
    settled(twins)


def test_a_directory_above_that_was_replaced_is_noticed(tmp_path):
    needs("git")
    (tmp_path / "above").mkdir()
    with Twins(tmp_path / "above") as twins:
        settled(twins, "a", "b")
        twins.root.rename(tmp_path / "old")
        shutil.copytree(tmp_path / "old", twins.root, ignore=shutil.ignore_patterns("b"))
        assert not twins.record()


def test_what_another_process_has_recorded_is_built_upon_by_a_scan(twins):
    settled(twins, "a")
    twins.place.write("a", "two")
    twins.place.record()
    twins.place.write("a", "three")
    assert not twins.record()


def test_after_changes_without_a_scan_another_process_records_the_same(twins):
    settled(twins, "a", "gone", "kept.log")
    twins.place.write("b", "new")
    (twins.work / "gone").unlink()
    twins.record()
    last = twins.place.checkpoints().all()[0]
    assert twins.place.record() == last


def test_a_restore_is_recorded_without_a_scan(twins):
    settled(twins, "a")
    first = twins.place.checkpoints().all()[0]
    twins.place.write("a", "two")
    twins.record()
    done = twins.checkpoints().restore(first, force=True)
    assert (done.paths, done.after.tree) == (["a"], first.tree)
    assert twins.baseline.sufficed


def test_too_many_directories_are_scanned_each_time(twins, monkeypatch):
    monkeypatch.setattr("zotd.checkpoints.directory_watch.MOST_DIRECTORIES", 2)
    for path in ("a", "b/c", "d/e"):
        twins.place.write(path, path)
    assert [twins.record() for _ in range(4)] == [False] * 4
    assert inotify_descriptors() == 0


def test_a_change_that_the_kernel_does_not_report_is_found_when_the_checkpoints_are_packed(twins, monkeypatch):
    monkeypatch.setattr("zotd.checkpoints.packing.PACK_EVERY", 1)
    settled(twins, "a")
    os.link(twins.work / "a", twins.root / "outside")
    twins.record()
    (twins.root / "outside").write_text("changed from outside")
    before = twins.checkpoints().all()[0]
    assert twins.checkpoints().record(STEP, always=True).tree == before.tree
    twins.checkpoints().tidy(1000)
    assert twins.checkpoints().record(STEP, always=True).tree != before.tree


def test_a_closed_baseline_watches_nothing(twins):
    settled(twins, "a")
    assert inotify_descriptors() == 1
    twins.baseline.close()
    assert inotify_descriptors() == 0
    assert [twins.record() for _ in range(3)] == [False] * 3


def inotify_descriptors():
    """How many this process has open."""
    found = 0
    for one in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found += "inotify" in str(one.readlink())
    return found
