"""A checkpoint of a repository in which one file has changed, beside `git status` there; and the disk space of many."""

import os
import subprocess
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import rig
from benchmarks.rig import Row
from zotd.checkpoints.checkpoint import Occasion
from zotd.checkpoints.checkpoints import Checkpoints

FILES = 20_000

LARGE = 500_000

PER_FOLDER = 100

ROUNDS = 15

MANY = 1000
"""Checkpoints whose disk space is measured."""

LINES = 200
"""Of the file in which each of them adds one."""

TARGETS_MS = {FILES: 30.0, LARGE: 300.0}

DISK_TARGET_MB = 20.0

STEP = Occasion(kind="step", session="s_1", run="r_1")


async def measure() -> list[Row]:
    """One row for the time of a checkpoint, and one for the space of many."""
    with TemporaryDirectory(dir="/var/tmp") as folder:
        return [await timed(Path(folder), FILES), space(Path(folder))]


async def measure_large() -> list[Row]:
    """The time in a repository with half a million files, which takes minutes to make."""
    with TemporaryDirectory(dir="/var/tmp") as folder:
        return [await timed(Path(folder), LARGE)]


async def timed(folder: Path, files: int) -> Row:
    """Measure a checkpoint in a new repository with so many files."""
    work, env = repository(folder, files), surroundings(folder)
    Checkpoints(str(work), str(folder / "zot"), env).record(STEP)
    probes = {"checkpoint": partial(checkpoint, folder, work), "status": partial(status, work, env)}
    taken = await rig.in_turns(ROUNDS, probes)
    took, floor = (rig.median(taken[name]) * 1000 for name in probes)
    target = TARGETS_MS[files]
    what = f"a checkpoint of {files:,} files, one changed"
    return Row(what, took, "ms", floor, "git status", f"<= {target:g} ms", took <= target)


def space(folder: Path) -> Row:
    """Record a file with one more line each time, and measure what the records take on disk."""
    work = folder / "one"
    work.mkdir()
    place = work / "module.py"
    place.write_text("".join(f"line {number}\n" for number in range(LINES)))
    here = Checkpoints(str(work), str(folder / "zot"), surroundings(folder))
    for number in range(MANY):
        with place.open("a") as file:
            file.write(f"changed {number}\n")
        here.record(STEP, always=True)
        here.tidy(MANY)
    blocks = sum(one.lstat().st_blocks for one in Path(here.repository.folder).rglob("*"))
    megabytes = blocks * 512 / 1_000_000
    what = f"disk space of {MANY:,} checkpoints, one line each"
    target = f"<= {DISK_TARGET_MB:g} MB"
    return Row(what, megabytes, "MB", None, "", target, megabytes <= DISK_TARGET_MB)


async def checkpoint(folder: Path, work: Path) -> float:
    """Change a file, and return how long its checkpoint takes, in seconds."""
    with (work / "d1" / "f1.py").open("a") as file:
        file.write(f"changed at {time.monotonic_ns()}\n")
    start = time.perf_counter()
    Checkpoints(str(work), str(folder / "zot"), surroundings(folder)).record(STEP, always=True)
    return time.perf_counter() - start


async def status(work: Path, env: Mapping[str, str]) -> float:
    """Return how long git takes to find what has changed, in seconds."""
    start = time.perf_counter()
    git(work, env, "status", "--porcelain")
    return time.perf_counter() - start


def repository(folder: Path, files: int) -> Path:
    """Make a repository with so many small files, all committed."""
    work, env = folder / f"work{files}", surroundings(folder)
    for number in range(files):
        place = work / f"d{number // PER_FOLDER}" / f"f{number % PER_FOLDER}.py"
        if number % PER_FOLDER == 0:
            place.parent.mkdir(parents=True)
        place.write_text(f"number = {number}\n" * 10)
    git(work, env, "init", "-q")
    git(work, env, "add", "-A")
    git(work, env, "-c", "user.name=b", "-c", "user.email=b@localhost", "commit", "-qm", "all")
    return work


def surroundings(folder: Path) -> dict[str, str]:
    """The environment of a user."""
    return {"PATH": os.environ["PATH"], "HOME": str(folder / "user")}


def git(work: Path, env: Mapping[str, str], *args: str) -> None:
    """Run a git command of the user."""
    subprocess.run(  # noqa: S603  (a list, no shell)
        ["git", *args],  # noqa: S607  (the one of the user)
        cwd=work,
        env=env,
        check=True,
        stdout=subprocess.DEVNULL,
    )
