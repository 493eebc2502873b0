"""A workspace, a `$ZOT_HOME` beside it, and a look at every file in the workspace."""

import os
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.needs import needs
from zotd.checkpoints.checkpoint import Occasion
from zotd.checkpoints.checkpoints import Checkpoints
from zotd.checkpoints.judging import RecordingLimits

MANUAL = Occasion(kind="manual")
LIMITS = RecordingLimits(file_bytes=1000)


def git(cwd, *args):
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *args], cwd=cwd, env=env, check=True, capture_output=True)
    return done.stdout.decode(errors="surrogateescape")


@dataclass
class Place:
    """A workspace and its surroundings."""

    root: Path
    limits: RecordingLimits = LIMITS

    @property
    def work(self):
        return self.root / "work"

    @property
    def home(self):
        return self.root / "zot"

    def checkpoints(self, *, env=None, **more):
        found = {"HOME": str(self.root / "user"), "PATH": os.environ["PATH"], **(env or {})}
        return Checkpoints(str(self.work), str(self.home), found, limits=self.limits, **more)

    def record(self, **fields):
        occasion = Occasion(**{"kind": "manual", **fields})
        return self.checkpoints().record(occasion, always=occasion.kind in {"step", "end"})

    def write(self, path, content="", mode=0o644):
        place = self.work / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
        place.chmod(mode)

    def files(self, top=None):
        """Each file below the workspace but those of `.git`: its content, and whether it is executable or a link."""
        top = top or self.work
        found: dict[str, tuple[str, str | bytes]] = {}
        for folder, folders, names in os.walk(top):
            folders[:] = [name for name in folders if name != ".git" and not Path(folder, name).is_symlink()]
            for name in [*names, *(one.name for one in Path(folder).iterdir() if one.is_symlink() and one.is_dir())]:
                place = Path(folder, name)
                kind = place.lstat().st_mode
                key = str(place.relative_to(top))
                if stat.S_ISLNK(kind):
                    found[key] = ("link", str(place.readlink()))
                elif stat.S_ISREG(kind):
                    found[key] = ("x" if kind & 0o100 else "-", place.read_bytes())
        return found


@pytest.fixture
def place(tmp_path):
    needs("git")
    made = Place(tmp_path)
    made.work.mkdir()
    return made
