"""A checkpoint of a repository in which nothing, one file or many have changed, and the disk space of many checkpoints.

Each is measured as a daemon makes it, which watches the directory, beside one that looks at all files.
"""

import os
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import rig
from benchmarks.rig import Row
from zotd.checkpoints.baseline import Baseline
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


CHANGED = (0, 1, 100)
"""Numbers of files that change before a checkpoint."""

UNTIL_WATCHED = 3
"""Checkpoints of a new directory until only changes are looked at."""


async def measure() -> list[Row]:
    """Rows for the time of a checkpoint, and one for the space of many."""
    with TemporaryDirectory(dir="/var/tmp") as folder:
        return [*await timed(Path(folder), FILES), space(Path(folder))]


async def measure_large() -> list[Row]:
    """The time in a repository with half a million files, which takes minutes to make."""
    with TemporaryDirectory(dir="/var/tmp") as folder:
        return await timed(Path(folder), LARGE)


async def timed(folder: Path, files: int) -> list[Row]:
    """Measure checkpoints in a new repository with so many files."""
    work, env = repository(folder, files), surroundings(folder)
    watched = Recordings(folder, "zot", work, Baseline())
    scanned = Recordings(folder, "scanned", work, None)
    for _ in range(UNTIL_WATCHED):
        watched.record()
    scanned.record()
    probes = {
        f"{kind.name} {count}": partial(kind.checkpoint, count) for count in CHANGED for kind in (watched, scanned)
    }
    taken = await rig.in_turns(ROUNDS, {**probes, "status": partial(status, work, env)})
    rows = [row(files, count, taken, (watched, scanned)) for count in CHANGED]
    took = rig.median(taken["status"]) * 1000
    return [*rows, Row(f"git status of {files:,} files", took, "ms", None, "", "", None)]


def row(files: int, count: int, taken: Mapping[str, Sequence[float]], kinds: tuple["Recordings", "Recordings"]) -> Row:
    """The row of checkpoints after so many changes; a target was set for one."""
    took, floor = (rig.median(taken[f"{kind.name} {count}"]) * 1000 for kind in kinds)
    what = f"a checkpoint of {files:,} files, {count} changed"
    note = " and ".join(f"{kind.processor_ms(count):.1f}" for kind in kinds) + " ms of processor time"
    target = TARGETS_MS[files] if count == 1 else None
    said = f"<= {target:g} ms" if target else ""
    return Row(what, took, "ms", floor, "looking at all", said, None if target is None else took <= target, note)


class Recordings:
    """Checkpoints of one directory in one home, with the processor time that they take."""

    def __init__(self, folder: Path, name: str, work: Path, baseline: Baseline | None) -> None:
        """`baseline`: None: each one looks at all files."""
        self.name = name
        self._home = str(folder / name)
        self._work = work
        self._env = surroundings(folder)
        self._baseline = baseline
        self._processor_s: dict[int, list[float]] = {}

    def record(self) -> None:
        """Record the directory."""
        Checkpoints(str(self._work), self._home, self._env, baseline=self._baseline).record(STEP, always=True)

    async def checkpoint(self, count: int) -> float:
        """Change so many files, each in a directory of its own, and return how long their checkpoint takes, in seconds."""
        self.record()  # what was changed for others
        for number in range(count):
            with (self._work / f"d{number}" / "f1.py").open("a") as file:
                file.write(f"changed at {time.monotonic_ns()}\n")
        start, before = time.perf_counter(), processor_time()
        self.record()
        taken = time.perf_counter() - start
        self._processor_s.setdefault(count, []).append(processor_time() - before)
        return taken

    def processor_ms(self, count: int) -> float:
        """The median of the processor time of the checkpoints after so many changes, with that of git."""
        return rig.median(self._processor_s[count]) * 1000


def processor_time() -> float:
    """Of this process and its children that have ended, in seconds."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


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
