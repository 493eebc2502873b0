"""Workspaces that are refused before anything is read."""

import os

import pytest

from zotd.checkpoints.checkpoints import Checkpoints
from zotd.checkpoints.eligibility import check
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
