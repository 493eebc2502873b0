"""What a template process does before it serves, for the terminal client."""

import os
import sys
import threading
from pathlib import Path

from zottui import rehearsal
from zottui.app import App


def state():
    """What a rehearsal must leave as it was."""
    descriptors = {
        path.name: os.fstat(int(path.name)).st_ino for path in Path("/proc/self/fd").iterdir() if is_open(path)
    }
    return descriptors, threading.enumerate(), sys.stdin, sys.stdout, os.environ.get("TERM")


def is_open(path):
    return Path(f"/proc/self/fd/{path.name}").exists()


def test_a_rehearsal_draws_a_session_and_a_key_and_leaves_nothing(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    taken = []
    take = App.take

    def recorded(self, item):
        take(self, item)
        taken.append(self.state.session.id)

    monkeypatch.setattr(App, "take", recorded)
    before = state()
    rehearsal.rehearse()
    assert state() == before
    assert taken == ["s_rehearsal"]
    assert caplog.messages == []
    assert list(tmp_path.iterdir()) == []


def test_a_rehearsal_that_fails_is_logged_and_raises_nothing(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    rehearsal.rehearse()
    assert len(caplog.messages) == 1
