"""The temporary directory of commands where the user's contains the home directory."""

import asyncio
import os
import pathlib
import time
from pathlib import Path

import pytest

from tests.needs import needs
from zotd.jail import MECHANISMS, Mechanism, Network
from zotd.jail.mechanisms import find_jail
from zotd.jail.site import JailSite
from zotd.jail.temporary import KEPT_DAYS, sweep

KEY = "a key"


@pytest.fixture(params=["parent", "home"])
def around(person, request):
    """The person's home directory lies in the temporary directory, or is that."""
    (person.home / ".ssh").mkdir(exist_ok=True)
    (person.home / ".ssh" / "id").write_text(KEY)
    (person.home / ".zot").mkdir(exist_ok=True)
    (person.home / ".zot" / "auth.json").write_text(KEY)
    person.extra = {"TMPDIR": str(person.root if request.param == "parent" else person.home)}
    return person


def site(person):
    return JailSite(str(person.work), {**person.env, **person.extra}, Network.OFF)


@pytest.fixture(params=MECHANISMS)
def made(around, request):
    if request.param is Mechanism.BUBBLEWRAP:
        needs("bwrap")
    found = find_jail(site(around), [request.param])
    yield found
    found.close()


async def test_commands_have_a_temporary_directory_and_keep_what_is_in_it(around, made):
    said, code = await around.run(made, 'echo kept > "$(mktemp -d)/f" && cat "$TMPDIR"/*/f')
    assert (said, code) == ("kept\n", 0)
    said, code = await around.run(made, 'cat "$TMPDIR"/*/f')
    assert (said, code) == ("kept\n", 0)


async def test_nothing_else_is_opened(around, made):
    (around.root / "mine").write_text("mine")
    for secret in (".ssh/id", ".zot/auth.json"):
        said, _ = await around.run(made, f'cat "$HOME/{secret}"; cat "$TMPDIR/../../auth.json"')
        assert KEY not in said
    for target in (
        around.home / "new",
        around.home / ".zot" / "new",
        around.home / ".zot" / "run" / "new",
        around.root / "mine",
    ):
        await around.run(made, f"echo changed > {target}")
    assert not any((around.home / name).exists() for name in ("new", ".zot/new", ".zot/run/new"))
    assert (around.root / "mine").read_text() == "mine"


async def test_the_words_in_front_of_a_program_give_it_the_same_directory(around, made):
    child = await asyncio.create_subprocess_exec(
        *made.words(),
        *("/bin/sh", "-c", 'mktemp && echo "$TMPDIR"'),
        env={**around.env, **around.extra},
        cwd=around.work,
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        said, _ = await child.communicate()
    assert child.returncode == 0
    assert said.decode().splitlines()[-1] == made.policy.temporary


def test_what_is_old_in_it_is_removed_and_no_link_is_followed(around, made):
    folder = made.policy.temporary
    kept = around.root / "kept"
    kept.mkdir()
    (kept / "f").touch()
    old = time.time() - (KEPT_DAYS + 1) * 86_400
    for name in ("old", "new"):
        pathlib.Path(f"{folder}/{name}").mkdir()
        pathlib.Path(f"{folder}/{name}/link").symlink_to(kept)
    pathlib.Path(f"{folder}/link").symlink_to(kept)
    os.utime(f"{folder}/old", (old, old))
    os.utime(f"{folder}/link", (old, old), follow_symlinks=False)
    sweep(made.policy)
    assert [one.name for one in Path(folder).iterdir()] == ["new"]
    assert (kept / "f").exists()


def test_a_usual_temporary_directory_is_used_as_it_is(person):
    assert person.policy().temporary == ""
    assert str(person.root / "tmp") in person.policy().writable
