"""Property test: all journals return the same, whatever is written, deleted and reopened."""

import asyncio
import itertools
from functools import partial

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from zotd.store.journal import SqliteJournal
from zotd.store.memory import Memory
from zotd.store.opening import open_journal

EVERYTHING = 10**9

sessions = st.sampled_from(["s_1", "s_2"])
records = st.lists(st.sampled_from(["message", "step"]), max_size=4)
commits = st.lists(st.lists(records, max_size=3), min_size=1, max_size=4)


class Journals(RuleBasedStateMachine):
    """Writes the same to a journal in memory and to a stored one, and compares every read."""

    def __init__(self, author_of, say, open_stored):
        super().__init__()
        self.author_of, self.say = author_of, say
        self.open_stored = open_stored
        """Opens the same journal at each call."""
        self.runner = asyncio.Runner()
        self.memory = Memory()
        self.stored = self.runner.run(self.open_stored())
        self.authors = {}

    def teardown(self):
        self.runner.run(self.stored.close())
        self.runner.close()

    @rule(session=sessions, batches=commits, durable=st.booleans())
    def commit_several_at_once(self, session, batches, durable):
        self.runner.run(self._commit(session, batches, durable))

    async def _commit(self, session, batches, durable):
        both = self.authors.setdefault(
            session, [self.author_of(self.memory, session), self.author_of(self.stored, session)]
        )
        batches = [[(self.say.note("n"), [self._event(word) for word in words]) for words in b] for b in batches]
        for end in [author.commit(*batch, durable=durable) for batch in batches for author in both]:
            await end

    def _event(self, word):
        return self.say.said("m") if word == "message" else self.say.step()

    @rule(session=sessions)
    def delete(self, session):
        self.runner.run(self.memory.delete(session))
        self.runner.run(self.stored.delete(session))
        self.authors.pop(session, None)

    @rule()
    def reopen(self):
        self.runner.run(self.stored.close())
        self.stored = self.runner.run(self.open_stored())
        for session, (_, author) in self.authors.items():
            self.runner.run(self.stored.ownership.take(session))
            author.journal = self.stored

    @rule(
        session=sessions,
        number=st.integers(0, 12),
        seq=st.integers(0, 30),
        limit=st.integers(0, 20),
        limit_bytes=st.integers(0, 600),
    )
    def read(self, session, number, seq, limit, limit_bytes):
        async def answers(journal):
            return (
                await journal.records(session, number),
                await journal.events_after(session, seq, limit_bytes),
                await journal.messages_before(session, seq, limit),
                await journal.messages_before(session, None, limit),
                await journal.row(session),
            )

        assert self.runner.run(answers(self.memory)) == self.runner.run(answers(self.stored))

    @invariant()
    def replay_is_complete_and_exact(self):
        for session, (_, author) in self.authors.items():
            reached, data = self.runner.run(self.stored.events_after(session, 0, EVERYTHING))
            assert (reached, data.splitlines()) == (author.row.seq, author.lines())


def agree(author_of, say, open_new):
    """Check with a new journal for each example; `open_new` returns what opens it."""
    few = settings(max_examples=25, stateful_step_count=15, deadline=None)
    run_state_machine_as_test(lambda: Journals(author_of, say, open_new()), settings=few)  # type: ignore[arg-type]  # any factory


def test_memory_and_sqlite_return_the_same_after_any_operations(author_of, say, tmp_path):
    files = (tmp_path / f"{n}.db" for n in itertools.count())
    agree(author_of, say, lambda: partial(SqliteJournal.open, next(files)))


def test_memory_and_postgresql_return_the_same_after_any_operations(author_of, say, postgres_server, tmp_path):
    agree(author_of, say, lambda: partial(open_journal, tmp_path, postgres_server.database()))
