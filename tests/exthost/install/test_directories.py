"""Extensions from directories."""

import os
import socket
import stat

import pytest

from tests.exthost.install.conftest import manifest
from zotd.exthost.installed import InstallError, load, verify


async def test_a_directory_is_copied_and_recorded(place):
    source = place.directory(**{"main.sh": "#!/bin/sh", "notes.txt": "n"})
    (source / "main.sh").chmod(0o755)
    (source / "lib").mkdir()
    (source / "lib/link").symlink_to("../main.sh")
    for left_out in (".git", "__pycache__", "lib/.Git"):
        (source / left_out).mkdir()
        (source / left_out / "x").write_text("")

    done = await place.install("notes")

    assert done.manifest.directory == place.extensions / "notes"
    assert sorted(done.record.files) == ["extension.json", "lib/link", "main.sh", "notes.txt"]
    assert place.holds_only("notes", "notes/lib", *(f"notes/{file}" for file in done.record.files))
    assert [path.stat().st_mode & 0o777 for path in (done.manifest.directory / "main.sh", place.extensions)] == [
        0o700,
        0o700,
    ]
    assert (done.record.source, done.record.commit, done.previous, done.kept) == (str(source), "", None, None)
    assert load(place.home).extensions == {"notes": done.record}
    assert stat.S_IMODE((place.home / "extensions.json").stat().st_mode) == 0o600
    assert (place.started(), verify(place.home)) == (["notes"], [])


async def test_the_digest_is_that_of_names_modes_and_contents(place):
    source = place.directory(**{"main.sh": "a"})
    digests = [(await place.install("notes")).record.digest]
    (source / "main.sh").chmod(0o755)
    digests.append((await place.install("notes")).record.digest)
    (source / "main.sh").write_text("b")
    digests.append((await place.install("notes")).record.digest)
    (source / "main.sh").rename(source / "other.sh")
    digests.append((await place.install("notes")).record.digest)
    (source / "other.sh").touch()
    digests.append((await place.install("notes")).record.digest)
    assert len(set(digests[:4])) == 4
    assert digests[3] == digests[4]


def hostile_pipe(directory):
    os.mkfifo(directory / "pipe")


def hostile_socket(directory):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(directory / "s"))


def hostile_setuid(directory):
    (directory / "su").touch()
    (directory / "su").chmod(0o4755)


def hostile_size(directory):
    with (directory / "big").open("wb") as file:
        file.truncate(300 * 1024 * 1024)


def hostile_link(directory):
    (directory / "keys").symlink_to("../../.ssh")


def hostile_absolute_link(directory):
    (directory / "x").symlink_to(directory / "extension.json")


def hostile_chain(directory):
    (directory / "deep/er").mkdir(parents=True)
    (directory / "deep/er/a").symlink_to("../../flat")
    (directory / "flat").mkdir()
    (directory / "b").symlink_to("deep/er/a/../../x")  # by the names alone this stays inside


def hostile_newline(directory):
    (directory / "a\nb").touch()


def hostile_case(directory):
    (directory / "Foo").touch()
    (directory / "foo").mkdir()
    (directory / "foo/bar").touch()


def hostile_manifest(directory):
    (directory / "extension.json").write_text(manifest(description="x" * 2_000_000))


def hostile_skill(directory):
    (directory / "extension.json").write_text(manifest(skills=["../../x"]))


@pytest.mark.parametrize(
    ("hostile", "reason"),
    [
        (hostile_pipe, "'pipe' in it is a device, a pipe or a socket"),
        (hostile_socket, "'s' in it is a device, a pipe or a socket"),
        (hostile_setuid, "'su' in it is setuid or setgid"),
        (hostile_size, "it has more than 200 MiB, too much for an extension"),
        (hostile_link, r"the link 'keys' points outside of the directory, to '../../.ssh'"),
        (hostile_absolute_link, "the link 'x' points outside of the directory, to '/"),
        (hostile_chain, "the link 'b' points outside of the directory"),
        (hostile_newline, r"the name 'a\\nb' in it cannot be used"),
        (hostile_case, "are the same name on some file systems"),
        (hostile_manifest, "extension.json: it is over 1 MiB"),
        (hostile_skill, "is outside of the extension's directory"),
    ],
)
async def test_a_hostile_directory_leaves_nothing_behind(hostile, reason, place):
    hostile(place.directory())
    with pytest.raises(InstallError, match=f"^{place.cwd}/notes was not installed: .*{reason}"):
        await place.install("notes")
    assert place.holds_only()
    assert load(place.home).extensions == {}


@pytest.mark.parametrize("name", ["tools", "Channels"])
async def test_the_names_of_python_modules_are_reserved(name, place):
    place.directory(name)
    with pytest.raises(InstallError, match="is reserved for Python modules"):
        await place.install(name)


@pytest.mark.parametrize("name", ["mcp-files", "py-shop", "MCP-x", "Py-x"])
async def test_a_name_that_looks_like_one_of_ours_is_refused(name, place):
    place.directory(name)
    with pytest.raises(InstallError, match="begins with mcp- or py-"):
        await place.install(name)
    assert load(place.home).extensions == {}


async def test_a_directory_without_a_manifest_is_no_extension(place):
    (place.cwd / "x").mkdir()
    with pytest.raises(InstallError, match=r"its extension\.json cannot be read: no such file"):
        await place.install("x")
    assert place.holds_only()


async def test_a_file_that_cannot_be_copied_is_named(place):
    place.directory()
    (place.home / "extensions").write_text("")
    with pytest.raises(InstallError, match="cannot be written"):
        await place.install("notes")
