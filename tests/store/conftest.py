"""Fixtures that write to a journal in the way `zotd.sessions` does."""

import asyncio

import msgspec
import pytest

from zotd.core.ports import JournalEntry, SessionRow
from zotd.core.records import Note, Settings
from zotd.store.journal import SqliteJournal
from zotd.store.memory import Memory
from zotd.store.opening import open_journal
from zotd.testing.postgres_server import MISSING, PostgresServer
from zotd.wire import events
from zotd.wire.base import ENCODER
from zotd.wire.content import Text

TIME = "2026-11-21T20:11:18.919Z"
MESSAGES = (events.UserMessage, events.AssistantMessage, events.ToolResultEvent)


def note(text):
    return Note(time=TIME, level="info", text=text)


def said(text):
    return events.UserMessage(content=[Text(text)], time=TIME)


def step(number=1):
    return events.TurnStart(number)


class Author:
    """A session that numbers its records, stamps its events, and remembers what it wrote."""

    def __init__(self, journal, session="s_1", **fields):
        self.journal = journal
        settings = Settings(provider="p", model="m")
        fields = {"name": session, "cwd": "/home", "created": TIME, "updated": TIME, "state": "idle"} | fields
        self.row = SessionRow(id=session, settings=settings, **fields)
        self.entries = []

    def seal(self, record, shown=()):
        first = self.row.seq + 1
        stamped = [
            msgspec.structs.replace(event, session=self.row.id, seq=seq) for seq, event in enumerate(shown, first)
        ]
        entry = JournalEntry(
            number=self.row.records + 1,
            record=record,
            first_seq=first if stamped else 0,
            last_seq=first + len(stamped) - 1 if stamped else 0,
            events=ENCODER.encode_lines(stamped),
            messages=sum(isinstance(event, MESSAGES) for event in stamped),
        )
        self.row = msgspec.structs.replace(self.row, records=entry.number, seq=self.row.seq + len(stamped))
        return entry

    def commit(self, *items, durable=False, done=None, **changes):
        """Commit `items`, pairs of record and events. The future ends as the commit does."""
        entries = [self.seal(*item) for item in items]
        self.row = msgspec.structs.replace(self.row, **changes)
        self.entries += entries
        return self.send(self.row, entries, durable=durable, done=done)

    def send(self, row, entries, *, durable=False, done=None):
        future = asyncio.get_running_loop().create_future()

        def finish(error):
            if done is not None:
                done(error)
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        self.journal.commit(row, entries, durable=durable, done=finish)
        return future

    def lines(self):
        return [line for entry in self.entries for line in entry.events.splitlines()]


@pytest.fixture
def author_of():
    """`author_of(journal, session)`: an `Author` of a session in that journal."""
    return Author


@pytest.fixture
async def journal(tmp_path):
    opened = await SqliteJournal.open(tmp_path / "zot.db")
    yield opened
    await opened.close()


@pytest.fixture
def say():
    """Makes records and events: `say.note(text)`, `say.said(text)`, `say.step(number)`."""

    class Words:
        note = staticmethod(note)
        said = staticmethod(said)
        step = staticmethod(step)

    return Words


@pytest.fixture(scope="session")
def postgres_server():
    """A server for the tests of this process, made when the first of them wants one."""
    if MISSING is not None:
        pytest.skip(MISSING)
    server = PostgresServer(fsync=False)
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgres"])
async def stored_journal(request, tmp_path):
    """Both journals with a database, one after the other."""
    url = None if request.param == "sqlite" else request.getfixturevalue("postgres_server").database()
    opened = await open_journal(tmp_path, url)
    yield opened
    await opened.close()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def any_journal(request, tmp_path):
    """All implementations of the port, one after the other."""
    if request.param == "postgres":
        journal = await open_journal(tmp_path, request.getfixturevalue("postgres_server").database())
        yield journal
        await journal.close()
        return
    if request.param == "memory":
        yield Memory()
        return
    opened = await SqliteJournal.open(tmp_path / "any.db")
    yield opened
    await opened.close()
