"""Restores: what they change, what they leave alone, and that they can be undone."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.checkpoints.conftest import git
from zotd.checkpoints.errors import CheckpointError
from zotd.checkpoints.outcome import Kept, WhyKept


def test_a_restore_returns_every_file_and_removes_new_ones(place):
    place.write("a", "one")
    place.write("dir/b", "b", mode=0o755)
    first, before = place.record(), place.files()
    place.write("a", "two")
    place.write("dir/b", "b")
    place.write("new/deep/c", "c")
    place.record()
    done = place.checkpoints().restore(first)
    assert place.files() == before
    assert not (place.work / "new").exists()
    assert done.paths == ["a", "dir/b", "new/deep/c"]
    assert done.kept == []


def test_a_restore_can_be_undone(place):
    place.write("a", "one")
    first = place.record()
    place.write("a", "two")
    place.write("unrecorded until now", "x")
    before = place.files()
    done = place.checkpoints().restore(first, force=True)
    place.checkpoints().restore(done.before)
    assert place.files() == before


def test_what_the_user_changed_since_is_left_alone_and_named(place):
    place.write("a", "one")
    place.write("b", "one")
    first = place.record()
    place.write("a", "two")
    place.write("b", "two")
    place.record()
    place.write("b", "the user's")
    place.write("c", "the user's")
    done = place.checkpoints().restore(first)
    assert done.paths == ["a"]
    assert done.kept == [Kept("b", WhyKept.CHANGED), Kept("c", WhyKept.CHANGED)]
    assert (place.work / "b").read_text() == "the user's"


def test_force_restores_what_the_user_changed_too(place):
    place.write("a", "one")
    first = place.record()
    place.write("a", "the user's")
    assert place.checkpoints().restore(first, force=True).paths == ["a"]
    assert (place.work / "a").read_text() == "one"


def test_one_file_or_directory_can_be_restored(place):
    for path in ("a", "dir/b", "dir/c", "dirt"):
        place.write(path, "one")
    first = place.record()
    for path in ("a", "dir/b", "dir/c", "dirt"):
        place.write(path, "two")
    place.record()
    assert place.checkpoints().restore(first, under=["dir"]).paths == ["dir/b", "dir/c"]
    assert place.checkpoints().restore(first, under=["a"]).paths == ["a"]
    assert (place.work / "dirt").read_text() == "two"


def test_a_file_that_was_not_recorded_is_not_taken_for_a_new_one(place):
    place.write("grows", "x" * 2000)
    place.write(".gitignore", "made\n")
    place.write("made", "ignored")
    first = place.record()
    place.write("grows", "small now")
    place.write(".gitignore", "")
    place.record()
    done = place.checkpoints().restore(first)
    assert [(one.path, one.why) for one in done.kept] == [
        ("grows", WhyKept.NOT_RECORDED_THEN),
        ("made", WhyKept.NOT_RECORDED_THEN),
    ]
    assert (place.work / "grows").read_text() == "small now"
    assert (place.work / "made").read_text() == "ignored"


@pytest.mark.parametrize("force", [False, True])
def test_something_that_is_not_recorded_is_never_overwritten(place, force):
    place.write("a", "one")
    place.write("d", "one")
    first = place.record()
    (place.work / "d").unlink()
    place.write("d/inner", "x" * 2000)
    place.write("a", "x" * 2000)
    place.record()
    done = place.checkpoints().restore(first, force=force)
    assert [one.path for one in done.kept] == ["a", "d"]
    assert len((place.work / "a").read_text()) == len((place.work / "d/inner").read_text()) == 2000


def test_a_link_on_the_way_leads_nowhere(place):
    place.write("dir/a", "one")
    first = place.record()
    place.write("dir/a", "two")
    place.record()
    outside = place.root / "outside"
    (place.work / "dir").rename(outside)
    (place.work / "dir").symlink_to(outside)
    done = place.checkpoints().restore(first, force=True)
    assert (outside / "a").read_text() == "two"
    assert done.paths == ["dir", "dir/a"]  # the link was not there then: it is a directory again
    assert (place.work / "dir/a").read_text() == "one"


def test_permissions_other_than_executable_stay(place):
    place.write("a", "one", mode=0o600)
    first = place.record()
    place.write("a", "two", mode=0o640)
    place.record()
    place.checkpoints().restore(first)
    assert (place.work / "a").stat().st_mode & 0o777 == 0o640


def test_what_cannot_be_written_is_named(place):
    place.write("dir/a", "one")
    first = place.record()
    (place.work / "dir/a").unlink()
    (place.work / "dir").rmdir()
    place.write("dir", "x" * 2000)  # not recorded, so it is not replaced
    place.record()
    done = place.checkpoints().restore(first, force=True)
    assert [(one.path, one.why, one.detail) for one in done.kept] == [
        ("dir/a", WhyKept.FAILED, "not a directory"),
    ]
    assert len((place.work / "dir").read_text()) == 2000


def test_a_lost_content_changes_nothing(place):
    place.write("a", "one")
    place.write("b", "one more")
    first = place.record()
    place.write("a", "two")
    place.write("b", "two more")
    place.record()
    before = place.files()
    shadow = place.checkpoints().repository
    blob = shadow.run("rev-parse", f"{first.tree}:b").decode().strip()
    Path(shadow.folder, "objects", blob[:2], blob[2:]).unlink()
    with pytest.raises(CheckpointError, match="is lost; nothing was changed"):
        place.checkpoints().restore(first)
    assert place.files() == before


def test_the_diff_of_two_checkpoints_is_a_patch(place):
    place.write("a", "one\n")
    first = place.record()
    place.write("a", "two\n")
    place.write("b", b"\0binary")
    second = place.record()
    patch = place.checkpoints().diff(first, second)
    assert b"-one\n+two\n" in patch
    place.checkpoints().restore(first)
    git(place.work, "init", "-q")
    (place.root / "patch").write_bytes(patch)
    git(place.work, "apply", place.root / "patch")
    assert place.files()["b"] == ("-", b"\0binary")


def test_the_diff_to_the_present_makes_no_checkpoint(place):
    place.write("a", "one\n")
    first = place.record()
    place.write("a", "two\n")
    assert b"+two\n" in place.checkpoints().diff(first, None)
    assert place.checkpoints().diff(first, None, ["elsewhere"]) == b""
    assert [one.number for one in place.checkpoints().all()] == [1]


def test_an_unknown_number_is_refused(place):
    place.record()
    with pytest.raises(CheckpointError, match="there is no checkpoint 7"):
        place.checkpoints().find(7)


PATHS = st.sampled_from(["a", "b", "a/b", "a/c", "d/e/f"])
STATES = st.dictionaries(PATHS, st.sampled_from([("-", b"1"), ("x", b"1"), ("-", b"2"), ("link", "b")]), max_size=5)


def possible(state):
    return {path: one for path, one in state.items() if not any(path.startswith(f"{other}/") for other in state)}


def put(place, state):
    """Make the workspace have exactly these files."""
    for path in sorted(place.files(), reverse=True):
        (place.work / path).unlink()
    for folder, _, _ in os.walk(place.work, topdown=False):
        if folder != str(place.work):
            Path(folder).rmdir()
    for path, (kind, content) in state.items():
        if kind == "link":
            (place.work / path).parent.mkdir(parents=True, exist_ok=True)
            (place.work / path).symlink_to(content)
        else:
            place.write(path, content, 0o755 if kind == "x" else 0o644)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(target=STATES, known=STATES, present=STATES, force=st.booleans())
def test_each_file_is_as_it_was_or_as_the_user_left_it(place, target, known, present, force):
    target, known, present = possible(target), possible(known), possible(present)
    put(place, target)
    first = place.record(kind="step", run="r", session="s")
    put(place, known)
    place.record(kind="end", run="r", session="s")
    put(place, present)
    done = place.checkpoints().restore(first, force=force)
    after = place.files()
    kept = {one.path for one in done.kept}
    for path in {*target, *known, *present}:
        if path in kept:
            assert after.get(path) == present.get(path)
        else:
            assert after.get(path) == target.get(path)
    users = {path for path in {*known, *present} if known.get(path) != present.get(path)}
    if force:
        assert after == target
    else:
        assert all(after.get(path) in (present.get(path), target.get(path)) for path in users)
        assert all(after.get(path) == present[path] for path in users & present.keys())
    place.checkpoints().restore(done.before, force=True)
    assert place.files() == present
