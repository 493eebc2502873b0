"""What a person can open to commands in a jail, and what stays closed whatever was granted."""

import os
import sys
from pathlib import Path

import pytest

from tests.jail.conftest import repository
from zotd.jail import MECHANISMS, Mechanism
from zotd.jail.grants import place_for
from zotd.jail.refusals import closed_places

BOTH = pytest.mark.parametrize("mechanism", MECHANISMS)


@pytest.fixture
def data(person):
    folder = person.root / "data"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    ("path", "removes", "place"),
    [
        ("data/file", False, "data/file"),
        ("data/file", True, "data"),
        ("data/new", False, "data"),
        ("data", False, "data"),
        ("data/absent/new", False, None),
    ],
)
def test_the_smallest_place_that_is_needed_is_named(person, data, path, removes, place):
    (data / "file").touch()
    found = place_for(str(person.root / path), person.policy(), removes=removes)
    assert found == (place and str(person.root / place))


@pytest.mark.parametrize(
    "path",
    [".ssh/id", ".ssh/new", "new", ".config/new", ".zot/new", ".cache/x", "work/x", "work/.git/hooks/x", "worktree"],
)
def test_some_places_are_named_for_nothing(person, path):
    repository(person.work)
    assert place_for(str(person.home / path), person.policy(), removes=False) is None


def test_what_the_user_could_not_change_without_a_jail_is_not_named(person, data, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)  # root, who tests in a container, may change everything
    assert place_for(str(data / "new"), person.policy(), removes=False) is None


def never(person):
    yield from ("/", "relative", "", "/absent", "/proc/sys", "/dev/shm/x", "/run", sys.prefix, sys.base_prefix)
    yield from map(str, (person.home, person.root, person.home / ".ssh", person.home / ".config", person.home / ".zot"))
    yield from (str(Path(__file__).parents[2] / "zotd"), f"{person.root}/data/../data", f"{person.root}/data\nx")
    yield f"{person.root}/data" + "/x" * 2048


def test_what_must_stay_closed_is_left_out_whatever_was_granted(person, data):
    policy = person.policy(granted=never(person))
    assert (policy.granted, policy.writable) == ((), person.policy().writable)


def test_a_grant_can_be_changed_and_what_is_beside_it_cannot(person, data):
    policy = person.policy(granted=[data])
    assert policy.granted == (str(data),)
    assert policy.may_write(str(data / "a" / "b"))
    assert not policy.may_write(str(person.root / "data2"))
    assert not policy.may_read(str(person.home / ".ssh" / "id"))


def test_what_git_runs_in_a_grant_stays_closed(person, data):
    repository(data)
    policy = person.policy(granted=[data])
    assert policy.may_write(str(data / ".git" / "index"))
    assert not policy.may_write(str(data / ".git" / "hooks" / "pre-commit"))
    assert not policy.may_write(str(data / ".git" / "config"))


@BOTH
async def test_a_grant_that_becomes_a_link_is_closed_for_the_next_command(person, data, mechanism):
    jail = person.jail(mechanism, granted=[data])
    assert await person.run(jail, f"touch {data}/a") == ("", 0)
    (data / "a").unlink()
    data.rmdir()
    data.symlink_to(person.home)
    _, code = await person.run(jail, f"touch {data}/planted")
    assert (code != 0, (person.home / "planted").exists()) == (True, False)
    data.unlink()
    data.mkdir()
    assert await person.run(jail, f"touch {data}/b") == ("", 0)
    jail.close()


@BOTH
async def test_a_repository_that_a_command_makes_in_a_grant_is_protected_from_the_next_one(person, data, mechanism):
    jail = person.jail(mechanism, granted=[data])
    await person.run(jail, f"git init -q {data}")
    await person.run(jail, f"echo x > {data}/.git/hooks/pre-commit")
    jail.close()
    assert (data / ".git/hooks/pre-commit").exists() == (mechanism is Mechanism.LANDLOCK)


@BOTH
async def test_a_file_can_be_opened_alone(person, data, mechanism):
    (data / "log").write_text("1")
    jail = person.jail(mechanism, granted=[data / "log"])
    said, code = await person.run(jail, f"echo 2 > {data}/log; touch {data}/other")
    jail.close()
    assert (code, (data / "log").read_text(), "other" in said) == (1, "2\n", True)


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("/bin/bash: line 1: {data}/new: Read-only file system", "data"),
        ("touch: cannot touch '{data}/new': Permission denied", "data"),
        ("rm: cannot remove '{data}/file': Read-only file system", "data"),
        ("bash: {data}/file: Permission denied", "data/file"),
        ("bash: {data}/a file: Permission denied", "data/a file"),
        ("PermissionError: [Errno 13] Permission denied: '{data}/a file'", "data/a file"),
        ("Error: EROFS: read-only file system, open '{data}/file'", "data/file"),
        ("open {data}/new: read-only file system", "data"),
        ("the file {data}/file is fine", None),
        ("cannot stat {data}/a file, Permission denied", None),
        ("touch: cannot touch '{data}/a'$'\\n''b': Permission denied", None),
        ("cat: {data}/file: No such file or directory", None),
        ("touch: cannot touch '../data/new': Permission denied", None),
        ("touch: \0{data}/a\0b: Permission denied", None),
    ],
)
def test_the_place_is_read_from_the_output_only_where_the_path_is_certain(person, data, line, place):
    (data / "file").touch()
    (data / "a file").touch()
    said = f"starting\n{line.format(data=data)}\n"
    assert closed_places(said, person.policy()) == ([str(person.root / place)] if place else [])


def test_few_places_are_named_and_none_in_another(person, data):
    for n in range(9):
        (data / str(n)).mkdir()
    lines = [f"touch: cannot touch '{data}/{n}/x': Permission denied" for n in range(9)]
    assert closed_places("\n".join(lines), person.policy()) == [f"{data}/{n}" for n in range(3)]
    lines.append(f"touch: cannot touch '{data}/x': Permission denied")
    assert closed_places("\n".join(lines), person.policy()) == [str(data)]
