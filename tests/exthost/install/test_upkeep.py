"""Installing again, removing, switching on and off, and what has become of what was installed."""

import asyncio
import subprocess
import sys

import pytest

from tests.exthost.install.conftest import manifest
from zotd.exthost.installed import InstallError, choices, load, verify
from zotd.exthost.removal import remove, set_enabled


def by_hand(place, name="notes", directory=None, **fields):
    path = place.extensions / (directory or name)
    path.mkdir(parents=True)
    (path / "extension.json").write_text(manifest(name, **fields))
    return path


async def test_installing_again_from_the_same_place_replaces(place):
    source = place.directory(old="", both="1")
    first = await place.install("notes")
    (source / "old").unlink()
    (source / "both").write_text("2")
    second = await place.install(source)
    assert second.previous == first.record
    assert place.holds_only("notes", "notes/both", "notes/extension.json")
    assert (place.extensions / "notes/both").read_text() == "2"


async def test_a_failed_update_leaves_the_installed_version(place):
    source = place.directory(both="1")
    first = await place.install("notes")
    (source / "link").symlink_to("/etc")
    with pytest.raises(InstallError):
        await place.install("notes")
    assert load(place.home).extensions == {"notes": first.record}
    assert verify(place.home) == []


async def test_another_source_replaces_only_when_that_is_meant(place):
    place.directory()
    await place.install("notes")
    repo = place.repo()
    commit = repo.commit()
    with pytest.raises(InstallError, match=f"notes exists already, from {place.cwd}/notes; remove or replace it"):
        await place.install(f"{place.url}/notes")
    done = await place.install(f"{place.url}/notes", replace=True)
    assert (done.record.commit, done.kept) == (commit, None)
    assert place.holds_only("notes", "notes/extension.json")


async def test_an_extension_copied_by_hand_is_kept_when_it_is_replaced(place):
    place.directory()
    (by_hand(place) / "work").write_text("of months")
    with pytest.raises(InstallError, match="notes exists already and was not installed"):
        await place.install("notes")
    done = await place.install("notes", replace=True)
    assert done.kept is not None
    assert (done.kept / "work").read_text() == "of months"
    assert place.started() == ["notes"]
    assert not (place.extensions / "notes/work").exists()


WITH_A_FULL_DISK = """
import asyncio, resource, sys
from pathlib import Path
from zotd.exthost.install import install
from zotd.exthost.installed import InstallError

home, source = map(Path, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))  # enough for the extension, not for the record
try:
    asyncio.run(install(str(source), home=home, cwd=home, env={}, replace=True))
except InstallError as error:
    sys.exit(str(error))
"""


async def test_an_installation_that_cannot_be_recorded_changes_nothing(place):
    source = place.directory()
    (by_hand(place) / "work").write_text("of months")
    argv = [sys.executable, "-c", WITH_A_FULL_DISK, place.home, source]
    done = await asyncio.to_thread(subprocess.run, argv, check=False, stderr=subprocess.PIPE, text=True)
    assert done.stderr.endswith("extensions.json cannot be written: File too large\n")
    assert place.holds_only(".removed", "notes", "notes/extension.json", "notes/work")


async def test_a_link_is_replaced_and_not_what_it_leads_to(place):
    source = place.directory(mine="")
    place.extensions.mkdir()
    (place.extensions / "notes").symlink_to(source)
    await place.install("notes", replace=True)
    assert not (place.extensions / "notes").is_symlink()
    assert (source / "mine").exists()


async def test_a_name_that_differs_only_in_case_is_refused(place):
    by_hand(place, "Notes")
    place.directory()
    with pytest.raises(InstallError, match="notes and Notes, which is there already, differ only in case"):
        await place.install("notes", replace=True)


async def test_an_installed_extension_is_removed_with_its_record(place):
    place.directory()
    await place.install("notes")
    set_enabled("notes", False, home=place.home)
    assert remove("notes", home=place.home).kept is None
    assert place.holds_only()
    assert (load(place.home).extensions, load(place.home).enabled) == ({}, {})


def test_an_extension_copied_by_hand_is_moved_away(place):
    by_hand(place, directory="other")
    gone = remove("notes", home=place.home)
    assert gone.name == "other"
    assert gone.kept is not None
    assert (gone.kept / "extension.json").exists()
    assert place.started() == []


def test_a_linked_directory_is_only_unlinked(place):
    source = place.directory(mine="")
    place.extensions.mkdir()
    (place.extensions / "link").symlink_to(source)
    assert remove("notes", home=place.home).kept is None
    assert place.holds_only()
    assert (source / "mine").exists()


async def test_a_record_without_a_directory_can_be_removed(place):
    place.directory()
    await place.install("notes")
    (place.extensions / "notes").rename(place.cwd / "elsewhere")
    assert verify(place.home)[0][1].startswith("notes is no longer where it was installed; install it again from /")
    remove("notes", home=place.home)
    assert load(place.home).extensions == {}


@pytest.mark.parametrize("name", ["nothing", "..", "../home", "tools", "", ".installing"])
def test_a_directory_that_is_no_extension_cannot_be_removed(name, place):
    by_hand(place)
    by_hand(place, "tools")
    with pytest.raises(InstallError, match="there is no extension"):
        remove(name, home=place.home)
    with pytest.raises(InstallError, match="there is no extension"):
        set_enabled(name, False, home=place.home)
    assert (place.extensions / "notes").exists()


def test_one_name_of_two_directories_is_not_guessed_at(place):
    by_hand(place, directory="a")
    by_hand(place, directory="b")
    with pytest.raises(InstallError, match="notes is the name of a and b; use one of these"):
        remove("notes", home=place.home)
    assert remove("b", home=place.home).name == "b"


def test_the_user_s_choice_overrides_the_manifest_at_start(place):
    by_hand(place, "on")
    by_hand(place, "off", enabled=False)
    assert place.started() == ["on"]
    set_enabled("on", False, home=place.home)
    set_enabled("off", True, home=place.home)
    assert place.started() == ["off"]
    assert choices(place.home) == {"on": False, "off": True}


def test_an_extension_of_the_project_can_be_switched(place):
    path = place.cwd / ".zot/extensions/local"
    path.mkdir(parents=True)
    (path / "extension.json").write_text(manifest("local"))
    with pytest.raises(InstallError):
        set_enabled("local", False, home=place.home)
    set_enabled("local", False, home=place.home, cwd=place.cwd)
    assert place.started() == []


async def test_edited_files_are_named(place):
    place.directory(**{"main.sh": "a", "lib.sh": "b", "gone.sh": "c"})
    await place.install("notes")
    directory = place.extensions / "notes"
    (directory / "main.sh").write_text("edited")
    (directory / "lib.sh").chmod(0o755)
    (directory / "gone.sh").unlink()
    told = f"changed lib.sh, main.sh, removed gone.sh; install it again from {place.cwd}/notes, or remove it"
    assert verify(place.home) == [("notes", f"notes differs from what was installed: {told}")]


async def test_added_files_are_named(place):
    place.directory()
    await place.install("notes")
    for number in range(7):
        (place.extensions / f"notes/state\x1b{number}").write_text("1")
    sentence = verify(place.home)[0][1]
    assert r"added state\x1b0, state\x1b1, state\x1b2, state\x1b3, state\x1b4 and 2 more; install" in sentence
