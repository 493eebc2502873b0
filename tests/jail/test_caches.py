"""Caches that are missing: made for the programs that the user has, where no command could have put a link."""

import os
import stat

import pytest

from zotd.jail import MECHANISMS, JailError
from zotd.jail.caches import make_caches


@pytest.fixture
def user(person):
    """A home without caches, and a PATH with npm, cargo and Go."""
    programs = person.root / "bin"
    programs.mkdir()
    for name in ("npm", "cargo", "go"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    for name in (".cache", ".npm", ".cargo"):
        path = person.home / name
        if path.exists():
            path.rename(person.root / name.removeprefix("."))
    person.path = str(programs)
    return person


def made(user, **env):
    found = make_caches(str(user.work), {**user.env, "PATH": user.path, **env})
    return {os.path.relpath(path, user.home) for path in found}


def test_caches_of_installed_programs_are_made_for_the_user_only(user):
    assert made(user) == {
        *(".cache", ".npm", ".cargo/registry", ".cargo/git", ".cargo/.package-cache", ".cargo/.package-cache-mutate"),
        *("go/pkg/mod", ".cache/go-build"),
    }
    paths = [".cache", ".npm", ".cargo", ".cargo/registry", "go", "go/pkg", "go/pkg/mod"]
    assert {stat.S_IMODE((user.home / path).stat().st_mode) for path in paths} == {0o700}
    assert made(user) == set()


def test_without_the_program_there_is_no_cache(user):
    assert made(user, PATH="/nowhere") == {".cache"}


def test_a_variable_says_where_it_is(user):
    (user.root / "data").mkdir()
    assert f"{user.root}/data/npm" in {
        os.path.normpath(user.home / path) for path in made(user, npm_config_cache=f"{user.root}/data/npm")
    }


@pytest.mark.parametrize("target", ["elsewhere", "absent"])
def test_a_link_is_not_followed(user, target):
    (user.root / "elsewhere").mkdir()
    (user.home / ".cargo").symlink_to(user.root / target)
    assert not {path for path in made(user) if path.startswith(".cargo")}
    assert list((user.root / "elsewhere").iterdir()) == []


def test_nothing_is_made_where_commands_may_write_or_read_nothing_or_others_may_write(user):
    shared = user.root / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    for place in (user.work / "npm", user.home / ".ssh" / "npm", shared / "npm"):
        made(user, npm_config_cache=str(place))
        assert not place.exists()


def test_where_no_jail_is_possible_nothing_is_made(user):
    with pytest.raises(JailError):
        make_caches(str(user.home), {**user.env, "PATH": user.path})
    assert not (user.home / ".cache").exists()


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_commands_can_use_what_was_made(user, mechanism):
    made(user)
    jail = user.jail(mechanism)
    said, code = await user.run(jail, "echo x > ~/.npm/f && echo x > ~/.cargo/.package-cache && cat ~/.npm/f")
    jail.close()
    assert (said, code) == ("x\n", 0)
