"""Disks that are full or read-only. Only root can make them; for others, tests/e2e/test_checkpoints.py has other ways."""

import errno
import os
import subprocess
from contextlib import contextmanager

import pytest

from tests.needs import needs
from zotd.checkpoints.errors import CheckpointError
from zotd.checkpoints.judging import SPARE_BYTES
from zotd.checkpoints.outcome import WhyKept

LARGE = 2 * SPARE_BYTES


@contextmanager
def mounted(path, *options):
    needs("mount", "umount")
    subprocess.run(["mount", *options, path], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def resize(path, size):
    subprocess.run(["mount", "-o", f"remount,size={size}", path], check=True)


def fill(path):
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 65536)
        except OSError as error:
            assert error.errno == errno.ENOSPC  # noqa: PT017  (it is reached: nothing else ends the loop)


@pytest.mark.parametrize("is_filled", [False, True], ids=["almost", "to the last byte"])
@pytest.mark.parametrize("is_known", [False, True], ids=["the first checkpoint", "a later one"])
def test_a_full_disk_stops_a_checkpoint_and_nothing_else(place, is_known, is_filled):
    if os.geteuid() != 0:
        return
    place.home.mkdir(mode=0o700)
    with mounted(place.home, "-t", "tmpfs", "-o", f"size={LARGE},mode=700", "tmpfs"):
        place.write("a", "first")
        before = place.record() if is_known else None
        resize(place.home, "1m")
        if is_filled:
            fill(place.home / "filler")
        place.write("a", os.urandom(900))
        files = place.files()
        with pytest.raises(CheckpointError, match="too little for checkpoints; free some space"):
            place.record()
        assert place.files() == files
        resize(place.home, LARGE)
        assert place.record().number == (2 if is_known else 1)
        if before is not None:
            place.checkpoints().restore(before, force=True)
            assert place.files() == {"a": ("-", b"first")}


def test_a_read_only_workspace_is_recorded_and_what_cannot_be_restored_is_named(place):
    if os.geteuid() != 0:
        return
    place.write("a", "first")
    before = place.record()
    place.write("a", "second")
    with mounted(place.work, "--bind", "-o", "ro", place.work):
        subprocess.run(["mount", "-o", "remount,ro,bind", place.work], check=True)
        assert place.record().number == 2
        done = place.checkpoints().restore(before)
        assert [(one.path, one.why) for one in done.kept] == [("a", WhyKept.FAILED)]
    assert place.files() == {"a": ("-", b"second")}
