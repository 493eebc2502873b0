"""Partial texts of running steps: only the newest is written, and one write per session is queued at most."""

import sqlite3

import pytest

from zotd.core.ports import PartialText, StorageError
from zotd.store.partials import Partials


class Disk:
    """A writer whose thread takes the next write when the test permits."""

    def __init__(self):
        self.waiting = []
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.execute("CREATE TABLE sessions (key INTEGER PRIMARY KEY, id)")
        self.connection.execute("INSERT INTO sessions VALUES (1, 's_1')")
        self.connection.execute("CREATE TABLE partials (session INTEGER PRIMARY KEY, run, step, text)")

    def take(self):
        """Apply the next write and return its callback."""
        write = self.waiting.pop(0)
        write.apply(self.connection)
        return write.done

    @property
    def text(self):
        return self.connection.execute("SELECT text FROM partials").fetchone()[0].decode()


@pytest.fixture
def disk():
    disk = Disk()
    yield disk
    disk.connection.close()


@pytest.fixture
def partials(disk):
    return Partials(disk.waiting.append, lambda *_: None)


@pytest.fixture
def keep(partials):
    return lambda text: partials.keep("s_1", PartialText("r_1", 1, text))


def test_newer_text_replaces_queued_text(disk, keep):
    for text in ("a", "ab", "abc"):
        keep(text)
    assert len(disk.waiting) == 1
    disk.take()(None)
    assert (disk.text, disk.waiting) == ("abc", [])


def test_text_that_arrives_during_a_write_is_written_next(disk, keep):
    keep("a")
    done = disk.take()
    for text in ("ab", "abc"):
        keep(text)
    assert disk.waiting == []
    done(None)
    assert len(disk.waiting) == 1
    disk.take()(None)
    assert (disk.text, disk.waiting) == ("abc", [])


def test_partial_texts_keep_their_order_relative_to_commits(disk, keep, partials):
    keep("a")
    done = disk.take()
    keep("ab")
    partials.pass_by("s_1")
    disk.waiting.append("the commit")
    keep("x")
    assert len(disk.waiting) == 3
    disk.take()
    assert disk.text == "ab"
    assert disk.waiting.pop(0) == "the commit"
    done(None)
    assert len(disk.waiting) == 1
    disk.take()
    assert disk.text == "x"


def test_failures_are_logged_once_until_a_write_succeeds(disk, keep, caplog):
    full = StorageError("full")
    for _ in range(3):
        keep("a")
        disk.take()(full)
    assert caplog.text.count("could not be kept: full") == 1
    keep("ab")
    disk.take()(None)
    assert disk.text == "ab"
    keep("abc")
    disk.take()(full)
    assert caplog.text.count("could not be kept: full") == 2
