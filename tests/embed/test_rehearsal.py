"""What a template process does before it serves."""

import threading
from pathlib import Path

import psutil
import pytest

from zotd.embed import rehearsal
from zotd.embed.session_runtime import Runtime


@pytest.fixture
def events(monkeypatch):
    """The kinds of all events of the rehearsals."""
    found = []
    prompt = Runtime.prompt

    async def recorded(self, text):
        async for event in prompt(self, text):
            found.append(event)
            yield event

    monkeypatch.setattr(Runtime, "prompt", recorded)
    return found


def test_a_rehearsal_gets_a_reply_through_each_sdk_and_leaves_nothing(events, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = threading.enumerate(), set(Path("/proc/self/fd").iterdir())
    rehearsal.rehearse()
    assert [event.delta for event in events if type(event).__name__ == "TextDelta"] == ["ready"] * len(
        rehearsal.REPLIES
    )
    assert caplog.messages == []
    assert (threading.enumerate(), set(Path("/proc/self/fd").iterdir())) == before
    assert not psutil.Process().net_connections()
    assert list(tmp_path.iterdir()) == []


def test_a_rehearsal_that_fails_is_logged_and_raises_nothing(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    rehearsal.rehearse()
    assert len(caplog.messages) == len(rehearsal.REPLIES)
