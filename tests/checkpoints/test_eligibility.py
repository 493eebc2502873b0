"""Workspaces that are refused before anything is read."""

import os

import pytest

from zotd.checkpoints.checkpoints import Checkpoints
from zotd.checkpoints.eligibility import check, why_unwatchable
from zotd.checkpoints.errors import UnrecordableError


@pytest.mark.parametrize("inner", ["", "deep/in/it"])
def test_the_home_directory_and_what_contains_it_are_refused(tmp_path, inner):
    home = tmp_path / inner
    home.mkdir(parents=True, exist_ok=True)
    with pytest.raises(UnrecordableError, match="contains your home directory"):
        check(str(tmp_path), {"HOME": str(home)})


def test_the_root_is_refused():
    with pytest.raises(UnrecordableError, match="root of the file system"):
        check("/", {"HOME": "/home/ann"})


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", "9p"])
def test_a_network_file_system_is_refused_by_its_name(tmp_path, kind):
    mounts = tmp_path / "mountinfo"
    share = tmp_path / "share"
    share.mkdir()
    mounts.write_text(f"1 1 0:1 / / rw - ext4 /dev/a rw\n2 1 0:2 / {share} rw shared:1 - {kind} server:/x rw\n")
    with pytest.raises(UnrecordableError, match=f"network file system .{kind}"):
        check(str(share), {"HOME": str(tmp_path / "u")}, str(mounts))
    check(str(tmp_path), {"HOME": "/home/ann"}, str(mounts))


def test_the_innermost_mount_decides(tmp_path):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 1 0:1 / / rw - nfs a rw\n2 1 0:2 / {tmp_path} rw - ext4 b rw\n")
    check(str(tmp_path), {"HOME": "/home/ann"}, str(mounts))


def test_a_machine_without_git_is_told_so(tmp_path):
    with pytest.raises(UnrecordableError, match="git was not found on PATH"):
        Checkpoints(str(tmp_path), str(tmp_path / "zot"), {"HOME": "/home/ann", "PATH": str(tmp_path)})


def test_a_git_in_the_workspace_is_not_run(tmp_path):
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\ntouch ran\n")
    program.chmod(0o755)
    with pytest.raises(UnrecordableError, match="git was not found"):
        Checkpoints(str(tmp_path), str(tmp_path / "zot"), {"HOME": "/home/ann", "PATH": os.pathsep.join([".", "bin"])})


def test_an_old_git_is_named(tmp_path):
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\necho git version 2.17.1\n")
    program.chmod(0o755)
    with pytest.raises(UnrecordableError, match=r"2\.17\.1 is too old"):
        Checkpoints(str(tmp_path), str(tmp_path / "zot"), {"HOME": "/home/ann", "PATH": str(tmp_path)})


@pytest.mark.parametrize("kind", ["overlay", "fuse.encfs", "nfs4", "vboxsf"])
def test_a_file_system_that_others_may_change_is_not_watched(tmp_path, kind):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 1 0:1 / / rw - ext4 a rw\n2 1 0:2 / {tmp_path} rw - {kind} b rw\n")
    assert why_unwatchable(str(tmp_path), str(mounts)) == f"it is on a file system of the type {kind}"


def test_a_workspace_in_which_something_is_mounted_is_not_watched(tmp_path):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 1 0:1 / / rw - ext4 a rw\n2 1 0:2 / {tmp_path}/inner rw - ext4 b rw\n")
    assert why_unwatchable(str(tmp_path), str(mounts)) == "another file system is mounted in it"
    assert not why_unwatchable(str(tmp_path / "inner"), str(mounts))
    assert not why_unwatchable(str(tmp_path / "inne"), str(mounts))


def test_a_workspace_is_not_watched_when_the_mounts_are_unknown(tmp_path):
    assert "unknown" in why_unwatchable(str(tmp_path), str(tmp_path / "missing"))
