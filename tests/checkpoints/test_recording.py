"""What a checkpoint contains, and what it leaves out."""

import os
import shutil
import threading
from pathlib import Path

import pytest

from tests.checkpoints.conftest import MANUAL, Place, git
from zotd.checkpoints.errors import AbandonedError, CheckpointError, UnrecordableError
from zotd.checkpoints.judging import RecordingLimits
from zotd.checkpoints.left_out import Omission, Why


def recorded(place, checkpoint):
    """The files of a checkpoint, restored into a directory of their own."""
    shadow = place.checkpoints().repository
    names = shadow.run("ls-tree", "-r", "-z", "--name-only", checkpoint.tree).split(b"\0")
    return sorted(os.fsdecode(name) for name in names if name)


def left_out(place, checkpoint):
    return list(place.checkpoints().left_out(checkpoint).omissions)


def test_a_checkpoint_has_every_file_byte_by_byte(place):
    place.write("a", b"one\r\ntwo\n")
    place.write("bin/run", "#!/bin/sh\n", mode=0o755)
    place.write("empty")
    (place.work / "link").symlink_to("bin/run")
    first = place.record()
    before = place.files()
    for path in ("a", "bin/run", "empty", "link"):
        (place.work / path).unlink()
    place.checkpoints().restore(first, force=True)
    assert place.files() == before


def test_nothing_is_recorded_when_nothing_differs(place):
    place.write("a", "one")
    assert place.record() == place.record()


def test_checkpoints_are_numbered_and_listed_newest_first(place):
    for content in ("one", "two", "three"):
        place.write("a", content)
        place.record()
    assert [one.number for one in place.checkpoints().all()] == [3, 2, 1]


def test_a_step_is_on_record_even_if_nothing_differs(place):
    first = place.record(kind="step", session="s", run="r1")
    second = place.record(kind="end", session="s", run="r1")
    assert (second.number, second.tree) == (first.number + 1, first.tree)


def test_ignored_files_are_left_out_and_named(place):
    place.write(".gitignore", "*.log\nbuild/\n")
    place.write("a.log", "log")
    place.write("build/deep/out", "made")
    place.write("kept", "kept")
    found = place.record()
    assert recorded(place, found) == [".gitignore", "kept"]
    assert left_out(place, found) == [Omission("a.log", Why.IGNORED), Omission("build/", Why.IGNORED)]


def test_an_ignored_directory_is_named_as_a_whole_as_soon_as_nothing_in_it_is_recorded(place):
    place.write("build/recorded", "one")
    place.record()
    place.write(".gitignore", "build/\n")
    place.write("build/new", "two")
    assert left_out(place, place.record()) == [Omission("build/new", Why.IGNORED)]
    (place.work / "build/recorded").unlink()
    assert left_out(place, place.record()) == [Omission("build/", Why.IGNORED)]


def test_large_files_are_left_out_and_named(place):
    place.write("small", "x" * 1000)
    place.write("large", "x" * 1001)
    found = place.record()
    assert recorded(place, found) == ["small"]
    assert left_out(place, found) == [Omission("large", Why.LARGE, 1001)]


def test_a_file_that_became_large_is_left_out_from_then_on(place):
    place.write("a", "small")
    place.record()
    place.write("a", "x" * 2000)
    found = place.record()
    assert recorded(place, found) == []
    assert left_out(place, found) == [Omission("a", Why.LARGE, 2000)]


def test_a_sparse_file_of_20_gigabytes_costs_nothing(place):
    place.write("disk.img")
    os.truncate(place.work / "disk.img", 20 * 1024**3)
    assert left_out(place, place.record()) == [Omission("disk.img", Why.LARGE, 20 * 1024**3)]


def test_nested_repositories_and_submodules_are_left_out_and_named(place):
    place.write("own", "own")
    for name in ("inner", "sub", "fresh"):
        (place.work / name).mkdir()
        git(place.work / name, "init", "-q")
        place.write(f"{name}/file", "theirs")
    for name in ("inner", "sub"):
        git(place.work / name, "add", "file")
        git(place.work / name, "-c", "user.name=t", "-c", "user.email=t@e", "commit", "-qm", "m")
    git(place.work / "sub", "worktree", "add", "-q", place.work / "tree")
    found = place.record()
    assert recorded(place, found) == ["own"]
    assert {one.path for one in left_out(place, found)} == {"fresh/", "inner/", "sub/", "tree/"}


def test_a_directory_of_ignored_files_that_becomes_a_repository_is_named(place):
    place.write(".gitignore", "*.log\n")
    place.write("inner/a.log", "log")
    for folder in (place.work, place.work / "inner"):
        os.utime(folder, (0, 0))  # else git does not trust what it has cached of a directory that has just changed
    place.record()
    place.record()
    git(place.work / "inner", "init", "-q")
    assert left_out(place, place.record()) == [Omission("inner/", Why.REPOSITORY)]


def test_a_shadow_repository_of_an_earlier_version_gets_the_configuration_of_now(place):
    place.write("a", "one")
    place.record()
    folder = Path(place.checkpoints().repository.folder)
    wanted = (folder / "config").read_text()
    (folder / "config").write_text(wanted.replace("untrackedCache = false", "untrackedCache = true"))
    (folder / "zot-format").write_text("1")
    assert place.record().number == 1
    assert (folder / "config").read_text() == wanted


def test_files_that_cannot_be_recorded_are_named(place):
    place.write("own", "own")
    os.mkfifo(place.work / "pipe")
    place.write(".GIT/config", "odd")
    found = place.record()
    assert recorded(place, found) == ["own"]
    assert Omission(".GIT/config", Why.NAME, 0) in left_out(place, found)


def test_names_may_be_anything_that_a_file_system_takes(place):
    names = ["new\nline", "tab\t", "-rf", ":(top)x", "ä", "a\\b", os.fsdecode(b"\xff"), "git~1", "sp ace ", '"q"']
    for name in names:
        place.write(name, name.encode(errors="surrogateescape"))
    first = place.record()
    assert recorded(place, first) == sorted(names)
    before = place.files()
    for name in names:
        (place.work / name).unlink()
    place.checkpoints().restore(first, force=True)
    assert place.files() == before


def test_a_file_may_become_a_directory_and_a_link(place):
    place.write("a", "file")
    place.record()
    (place.work / "a").unlink()
    place.write("a/b", "inner")
    second = place.record()
    assert recorded(place, second) == ["a/b"]
    (place.work / "a/b").unlink()
    (place.work / "a").rmdir()
    (place.work / "a").symlink_to("elsewhere")
    assert recorded(place, place.record()) == ["a"]


def test_attributes_of_the_workspace_convert_nothing_and_start_nothing(place):
    place.write(".gitattributes", "* text eol=crlf filter=lfs ident working-tree-encoding=UTF-16\n")
    place.write("a", b"$Id$\none\r\n")
    first = place.record()
    (place.work / "a").unlink()
    place.checkpoints().restore(first, force=True)
    assert (place.work / "a").read_bytes() == b"$Id$\none\r\n"


def test_settings_and_variables_of_the_user_change_nothing(place, monkeypatch):
    place.write("user/.gitconfig", "[core]\n\texcludesFile = ~/ignored\n[commit]\n\tgpgSign = true\n")
    (place.root / "user").mkdir()
    (place.root / "user" / ".gitconfig").write_text("[core]\n\tautocrlf = input\n[init]\n\ttemplateDir = /nowhere\n")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    place.write("a", b"one\r\n")
    assert "a" in recorded(place, place.record())


def test_rules_above_the_workspace_count_and_so_does_info_exclude(place):
    git(place.root, "init", "-q")
    (place.root / ".gitignore").write_text(f"*.o\n/{place.work.name}/made/\n/other/\n!/{place.work.name}/kept.o\n*\n")
    (place.root / ".git" / "info" / "exclude").write_text("mine\n")
    for path in ("a.o", "made/x", "other/y", "mine", "kept.o"):
        place.write(path, path)
    assert recorded(place, place.record()) == ["kept.o", "other/y"]


def test_zots_own_directory_is_left_out(place):
    class Inside(Place):
        home = property(lambda self: self.work / ".zot-home")

    inside = Inside(place.root)
    inside.write("a", "a")
    inside.record()
    inside.write("b", "b")
    assert recorded(inside, inside.record()) == ["a", "b"]


def test_a_symlinked_workspace_is_the_same_workspace(place):
    place.write("a", "a")
    first = place.record()
    (place.root / "alias").symlink_to(place.work)

    class Alias(Place):
        work = property(lambda self: self.root / "alias")

    assert Alias(place.root).record() == first


def test_a_workspace_with_too_many_files_is_refused_with_advice(place):
    place.limits = RecordingLimits(files=2)
    for name in "abc":
        place.write(name, name)
    with pytest.raises(UnrecordableError, match=r"more than 2 files; .*\.gitignore"):
        place.record()


def test_a_workspace_with_too_much_to_record_is_refused_with_advice(place):
    place.limits = RecordingLimits(new_bytes=10)
    place.write("a", "x" * 11)
    with pytest.raises(UnrecordableError, match=r"\.gitignore"):
        place.record()


def test_many_files_at_once_go_into_one_pack(place):
    for number in range(1100):
        place.write(f"d{number % 10}/{number}", f"content {number}")
    first = place.record()
    packs = list((place.checkpoints().repository and place.home).glob("checkpoints/*/objects/pack/*.pack"))
    assert len(packs) == 1
    before = place.files()
    for path in before:
        (place.work / path).unlink()
    place.checkpoints().restore(first, force=True)
    assert place.files() == before


def test_a_lock_that_a_killed_git_has_left_is_removed(place):
    place.write("a", "one")
    place.record()
    folder = place.checkpoints().repository.folder
    for name in ("index.lock", "refs/heads/checkpoints.lock"):
        with Path(folder, name).open("w", encoding="ascii"):
            pass
    place.write("a", "two")
    assert place.record().number == 2


def test_a_caller_that_stops_waiting_is_heeded(place):
    place.write("a", "one")
    abandoned = threading.Event()
    first = place.checkpoints()
    with first._locked():
        abandoned.set()
        with pytest.raises(AbandonedError):
            place.checkpoints(abandoned=abandoned).record(MANUAL)


def test_a_git_that_takes_too_long_is_not_started_again(place, monkeypatch):
    place.write("a", "one")
    place.write("b", "two")
    place.record()
    monkeypatch.setattr("zotd.checkpoints.shadow.GIT_S", 0.1)
    started, programs = place.root / "started", place.root / "bin"
    programs.mkdir()
    real = shutil.which("git")
    (programs / "git").write_text(
        f'#!/bin/sh\n[ "$1" = status ] && echo $1 >> {started} && exec sleep 600\nexec {real} "$@"\n'
    )
    (programs / "git").chmod(0o755)
    slow = place.checkpoints(env={"PATH": f"{programs}:{os.environ['PATH']}"})
    with pytest.raises(AbandonedError, match=r"git took longer than 0\.1 s in .*/work and was stopped"):
        slow.record(MANUAL)
    assert started.read_text() == "status\n"


def test_a_recording_that_was_given_up_goes_on_where_it_was(place, monkeypatch):
    monkeypatch.setattr("zotd.checkpoints.scanning.BATCH", 1)
    for name in "abc":
        place.write(name, name)
    started, programs, third = place.root / "started", place.root / "bin", place.root / "third"
    programs.mkdir()
    os.mkfifo(third)
    real = shutil.which("git")
    (programs / "git").write_text(
        f'#!/bin/sh\n[ "$1" = update-index ] && echo one >> {started} && [ $(wc -l < {started}) = 3 ] && '
        f'echo > {third} && exec sleep 600\nexec {real} "$@"\n'
    )
    (programs / "git").chmod(0o755)
    env = {"PATH": f"{programs}:{os.environ['PATH']}"}
    abandoned = threading.Event()

    def give_up():
        third.read_text()
        abandoned.set()

    impatient = threading.Thread(target=give_up)
    impatient.start()
    with pytest.raises(AbandonedError):
        place.checkpoints(env=env, abandoned=abandoned).record(MANUAL)
    impatient.join()
    started.unlink()
    found = place.checkpoints(env=env).record(MANUAL)
    assert recorded(place, found) == ["a", "b", "c"]
    assert started.read_text() == "one\n"


def test_a_damaged_repository_is_named_with_what_helps(place):
    place.write("a", "one")
    place.record()
    folder = place.checkpoints().repository.folder
    with Path(folder, "refs/heads/checkpoints").open("w", encoding="ascii") as file:
        file.write("0" * 40)
    with pytest.raises(CheckpointError):
        place.checkpoints().all()


def test_a_clock_before_1970_does_not_stop_recording(place, monkeypatch):
    monkeypatch.setattr("zotd.checkpoints.recording.time.time", lambda: -5.0)
    place.write("a", "one")
    assert place.record().number == 1
