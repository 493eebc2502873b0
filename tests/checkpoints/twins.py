"""One workspace that is recorded twice: by what has changed, and by scans."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from tests.checkpoints.conftest import LIMITS, Place
from zotd.checkpoints.baseline import Baseline
from zotd.checkpoints.checkpoint import Occasion
from zotd.checkpoints.checkpoints import Checkpoints

STEP = Occasion(kind="step", session="s", run="r")


class ObservedBaseline(Baseline):
    """Remembers whether the last recording needed no scan."""

    sufficed = False

    def present(self, *args):
        found = super().present(*args)
        self.sufficed = found is not None
        return found


@dataclass
class Twins:
    """One workspace with two sets of checkpoints: with a baseline, and by scans alone."""

    root: Path
    baseline: ObservedBaseline = field(default_factory=ObservedBaseline)

    def __post_init__(self):
        self.place = Place(self.root)
        self.place.work.mkdir()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.baseline.close()

    @property
    def work(self):
        return self.place.work

    def record(self):
        """Record both, and return whether the first one was made without a scan."""
        by_changes = self.checkpoints()
        found = by_changes.record(STEP, always=True)
        by_scan = self._checkpoints("other", None)
        wanted = by_scan.record(STEP, always=True)
        assert found.tree == wanted.tree, self._difference(by_scan, found, wanted)
        assert by_changes.left_out(found) == by_scan.left_out(wanted)
        assert found.changed == wanted.changed
        return self.baseline.sufficed

    def checkpoints(self):
        """Those with a baseline, for one operation."""
        return self._checkpoints("zot", self.baseline)

    def _checkpoints(self, home, baseline):
        env = {"HOME": str(self.root / "user"), "PATH": os.environ["PATH"]}
        return Checkpoints(str(self.work), str(self.root / home), env, limits=LIMITS, baseline=baseline)

    def _difference(self, by_scan, found, wanted):
        objects = {
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(next((self.root / "zot" / "checkpoints").iterdir()) / "objects")
        }
        return by_scan.repository.run(
            "diff-tree", "-r", "--name-status", wanted.tree, found.tree, variables=objects
        ).decode(errors="replace")
