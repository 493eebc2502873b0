"""Checkpoints of a session whose directory takes longer to record than a step waits."""

import os
import shutil

import pytest

from tests.needs import needs
from zotd.checkpoints.checkpoints import Checkpoints
from zotd.config.current import CurrentConfig
from zotd.config.sections import Config
from zotd.workspace import session_checkpoints
from zotd.workspace.session_checkpoints import CheckpointKeeper


class Desk:
    """A directory with checkpoints, and a git that adds no files until `release`."""

    def __init__(self, root):
        needs("git")
        self.said: list[str] = []
        self.work, programs, self._gate = root / "work", root / "bin", root / "gate"
        for folder in (self.work, programs):
            folder.mkdir()
        (self.work / "a").write_text("one")
        os.mkfifo(self._gate)
        real = shutil.which("git")
        (programs / "git").write_text(
            f'#!/bin/sh\n[ "$1" = update-index ] && [ -e {self._gate} ] && read _ < {self._gate}\nexec {real} "$@"\n'
        )
        (programs / "git").chmod(0o755)
        self._home = str(root / "zot")
        self._env = {"HOME": str(root / "user"), "PATH": f"{programs}:{os.environ['PATH']}"}
        self.session = CheckpointKeeper(self._home, CurrentConfig(Config())).of(
            "s_1", str(self.work), environment=lambda: self._env, told=self.said.append
        )

    def release(self):
        self._gate.unlink()

    def kinds(self):
        """Why each checkpoint was recorded, the oldest first."""
        return [one.kind for one in Checkpoints(str(self.work), self._home, self._env).all()[::-1]]


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.setattr(session_checkpoints, "STEP_S", 0.2)
    made = Desk(tmp_path)
    yield made
    made.session.close()


async def test_a_step_does_not_wait_for_a_first_recording_that_takes_long_and_the_next_runs_can_be_undone(desk):
    await desk.session.before_step("r_1", 1, ["bash"])
    (said,) = desk.said
    assert said == (
        "the files are not recorded before this step, so it cannot be undone: that takes longer than 0.2 s here; it is "
        "done after this run, for the next ones"
    )
    await desk.session.before_step("r_1", 2, ["bash"])
    await desk.session.after_run("r_1", 3)
    assert desk.kinds() == []
    desk.release()
    await desk.session.tidy()
    assert desk.said[1:] == ["the files are recorded now; what the next runs change can be undone"]
    assert desk.kinds() == ["present"]


async def test_a_step_that_waits_for_a_recording_says_so_once(desk, monkeypatch):
    monkeypatch.setattr(session_checkpoints, "SLOW_S", 0.0)
    await desk.session.before_step("r_1", 1, ["bash"])
    desk.release()
    await desk.session.tidy()
    assert desk.said[0] == f"recording the files of {desk.work} before they change, for at most 0.2 s"
    assert sum("before they change" in one for one in desk.said) == 1


async def test_a_recording_that_fails_after_the_run_is_tried_again_after_the_next(desk, monkeypatch):
    monkeypatch.setattr(session_checkpoints, "TIDY_S", 0.2)
    await desk.session.before_step("r_1", 1, ["bash"])
    await desk.session.tidy()
    assert desk.kinds() == []
    monkeypatch.setattr(session_checkpoints, "TIDY_S", 600.0)
    desk.release()
    await desk.session.tidy()
    assert desk.kinds() == ["present"]


async def test_a_step_after_that_is_recorded_as_any_other(desk, monkeypatch):
    await desk.session.before_step("r_1", 1, ["bash"])
    desk.release()
    await desk.session.tidy()
    monkeypatch.setattr(session_checkpoints, "STEP_S", 120.0)
    await desk.session.before_step("r_2", 5, ["bash"])
    await desk.session.after_run("r_2", 6)
    assert desk.kinds() == ["present", "step", "end"]
