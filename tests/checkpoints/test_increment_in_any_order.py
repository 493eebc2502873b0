"""After any changes, a checkpoint that looks only at what has changed is the same as one that looks at everything."""

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.checkpoints.conftest import LIMITS, git
from tests.checkpoints.twins import Twins
from tests.needs import needs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="directories are watched on Linux only")

NAMES = ("a", "b.log", "build", "c", os.fsdecode(b"\xff"), "sp ace")

RULES = ("*.log\n", "build/\n", "*.log\n!b.log\n/c\n", "", "a/b.log\n")

paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)


def write(work, path, content):
    place = work / path
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.is_fifo():
            place.write_bytes(os.fsencode(content))


def make(work, path, _):
    with suppress(OSError):
        (work / path).mkdir(parents=True, exist_ok=True)


def remove(work, path, _):
    place = work / path
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        with suppress(OSError):
            place.unlink()


def link(work, path, content):
    with suppress(OSError):
        (work / path).symlink_to(content)


def chmod(work, path, content):
    with suppress(OSError):
        if (work / path).is_file():
            (work / path).chmod(0o755 if len(content) % 2 else 0o644)


def move(work, path, content):
    with suppress(OSError, shutil.Error):
        (work / path).rename(work / content)


def rules(work, path, content):
    with suppress(OSError):
        ((work / path) if (work / path).is_dir() else work).joinpath(".gitignore").write_text(
            RULES[len(content) % len(RULES)]
        )


def repository(work, path, _):
    if (work / path).is_dir() and not (work / path).is_symlink():
        git(work / path, "init", "-q")


def pipe(work, path, _):
    with suppress(OSError):
        os.mkfifo(work / path)


def grow(work, path, _):
    with suppress(OSError):
        if (work / path).is_file():
            with (work / path).open("a") as file:
                file.write("x" * LIMITS.file_bytes)


OFTEN = (write, make, remove, move)
SELDOM = (link, chmod, pipe, grow, rules, repository)

changes = st.tuples(st.sampled_from([*OFTEN * 4, *SELDOM]), paths, st.one_of(paths, st.text("xy", max_size=6)))


@given(st.lists(st.lists(changes, min_size=1, max_size=6), min_size=4, max_size=8))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_after_any_changes_both_ways_record_the_same(steps):
    needs("git")
    with TemporaryDirectory(prefix="zot-") as folder, Twins(Path(folder)) as twins:
        for step in steps:
            for change, path, content in step:
                change(twins.work, path, content)
            twins.record()
