"""Which early summary a transcript may use, whatever happens while it is requested."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tests.core.folding import attempt, call, compaction, fold, prompt, reply, result, seen, usage
from zotd.core import records
from zotd.core.early_summary import PURPOSE
from zotd.core.fold import Fold
from zotd.core.transcript import Transcript
from zotd.testing.histories import TIME
from zotd.wire.content import Text

FAR = 1_000_000
"""More tokens than any of these transcripts has."""


def requested(covers, step=1, **fields):
    return attempt(step, number=0, covers=covers, **fields)


def ended(text="short", step=1, **fields):
    row = {"time": TIME, "run": "r", "step": step, "provider": "p", "model": "m", "tokens": None, "purpose": PURPOSE}
    return records.UsageRow(**row | {"summary": text} | fields)


def said(*texts):
    """Records of as many messages: prompts and replies in turns."""
    found = []
    for number, text in enumerate(texts):
        if number % 2:
            found.append(reply(Text(text)))
        else:
            found += [prompt(f"i{number}", text), attempt(key=f"i{number}")]
    return found


def usable(transcript, limit=FAR):
    found = transcript.early.usable(transcript.messages, limit)
    return None if found is None else (found.text, found.covers)


def config(model="m"):
    return records.ConfigRecord(time=TIME, settings=records.Settings(provider="p", model=model), name="")


REWIND = records.RewindRow(time=TIME, to=1)
CLEAR = records.Clear(time=TIME)
FORK = records.ForkRow(time=TIME, session="s", at=1)
TALK = said("a", "one", "b", "two")


def test_a_summary_replaces_what_it_covers_and_nothing_behind_it():
    transcript = fold(*TALK, requested(2), *said("c", "three"), ended())
    assert usable(transcript) == ("short", 2)
    transcript.apply(compaction(kept=len(transcript.messages) - 2))
    assert seen(transcript)[1:] == ["user: b", "assistant: two", "user: c", "assistant: three"]
    assert usable(transcript) is None


@pytest.mark.parametrize("event", [compaction(2), CLEAR, REWIND])
def test_a_summary_is_not_used_once_its_messages_are_replaced(event):
    assert usable(fold(*TALK, requested(2), event, ended())) is None
    assert usable(fold(*TALK, requested(2), ended(), event)) is None


def test_a_summary_of_another_model_is_dropped_while_it_is_under_way_and_kept_when_it_is_there():
    assert usable(fold(*TALK, requested(2), config("other"), ended())) is None
    assert usable(fold(*TALK, requested(2), ended(), config("other"))) == ("short", 2)
    assert usable(fold(*TALK, requested(2), config(), ended())) == ("short", 2)


def test_a_fork_has_the_finished_summary_and_not_the_request_of_its_origin():
    assert usable(fold(*TALK, requested(2), ended(), FORK)) == ("short", 2)
    fork = fold(*TALK, requested(2), FORK)
    assert fork.early.sent is None
    fork.apply(ended())
    assert usable(fork) is None


def test_a_summary_does_not_leave_a_result_without_its_call():
    transcript = fold(*said("a"), reply(call("c")), requested(2), result("c"), ended())
    assert usable(transcript) is None


def test_a_summary_is_not_used_when_what_follows_it_is_too_long():
    transcript = fold(*TALK, requested(2), ended(), *said("x" * 300))
    assert usable(transcript, limit=100) is None
    assert usable(transcript, limit=200) == ("short", 2)


@pytest.mark.parametrize(
    ("failure", "again"), [("server", False), ("refused", False), ("aborted", True), ("interrupted", True)]
)
def test_a_model_that_failed_is_not_asked_again_until_the_messages_are_replaced(failure, again):
    transcript = fold(*TALK, requested(2), ended("", failure=failure))
    assert transcript.early.may_begin is again
    transcript.apply(compaction(2))
    assert transcript.early.may_begin


def test_a_request_beside_the_run_does_not_end_the_request_of_the_run():
    transcript = fold(*TALK, attempt(2), requested(2), ended())
    assert transcript.in_flight is not None
    transcript.apply(usage())
    assert transcript.in_flight is None


def test_a_request_without_its_usage_row_is_read_again_after_a_restart():
    transcript = Transcript()
    folded = Fold(transcript)
    for number, record in enumerate([*TALK, requested(2), compaction(0)], 1):
        folded.apply(number, record)
    asked = len(TALK) + 1
    assert folded.base == asked
    folded.apply(asked + 2, ended())
    assert folded.base == asked + 1


class Session(RuleBasedStateMachine):
    """Messages come and are replaced while requests end late, twice, or out of order; a restart may come at any time.

    The test knows each message by its text and notes which ones a request was about.
    """

    def __init__(self):
        super().__init__()
        self.records: list[records.AnyRecord] | None = []
        self.transcript = Transcript()
        self.number = 0
        self.step = 0
        self.asked = {}
        """The texts that the request of each step was about."""
        self.open = []
        """Steps whose request has no usage row."""
        self.over = []

    def write(self, record):
        if self.records is not None:
            self.records.append(record)
        self.transcript.apply(record)

    def texts(self):
        return seen(self.transcript)

    @rule()
    def a_message_comes(self):
        self.number += 1
        self.write(prompt(f"i{self.number}", f"text {self.number}"))
        self.write(attempt(key=f"i{self.number}"))

    @precondition(lambda self: self.transcript.messages and self.transcript.early.may_begin)
    @rule(data=st.data())
    def a_summary_is_requested(self, data):
        covers = data.draw(st.integers(1, len(self.transcript.messages)))
        self.step += 1
        self.asked[self.step] = self.texts()[:covers]
        self.open.append(self.step)
        self.write(requested(covers, self.step))

    @precondition(lambda self: self.open)
    @rule(text=st.booleans())
    def the_request_ends(self, text):
        step = self.open.pop()
        self.over.append(step)
        self.write(ended(f"of {step}" if text else "", step, failure="" if text else "server"))

    @precondition(lambda self: self.over)
    @rule(data=st.data())
    def an_answer_comes_again(self, data):
        step = data.draw(st.sampled_from(self.over))
        before = usable(self.transcript)
        self.write(ended(f"of {step}, again", step))
        assert usable(self.transcript) == before

    @rule(kept=st.integers(0, 3))
    def the_transcript_is_compacted_by_hand(self, kept):
        self.write(compaction(min(kept, len(self.transcript.messages))))

    @rule()
    def the_transcript_is_cleared(self):
        self.write(CLEAR)

    @precondition(lambda self: len(self.transcript.messages) > 1)
    @rule(data=st.data())
    def the_session_is_rewound(self, data):
        left = data.draw(st.integers(1, len(self.transcript.messages) - 1))
        self.transcript.replace_messages(self.transcript.messages[:left])
        self.transcript.apply(REWIND)
        self.records = None  # a restart after a rewind reads other records: `tests/core/test_fold.py`

    @rule(model=st.sampled_from("mn"))
    def the_model_is_changed(self, model):
        self.write(config(model))

    @precondition(lambda self: usable(self.transcript) is not None)
    @rule()
    def the_summary_is_used(self):
        _, covers = usable(self.transcript)
        rest = self.texts()[covers:]
        self.write(compaction(len(self.transcript.messages) - covers))
        assert self.texts()[1:] == rest

    @invariant()
    def a_summary_is_about_the_first_messages(self):
        found = usable(self.transcript)
        if found is not None:
            text, covers = found
            step = int(text.split()[1])
            assert self.texts()[:covers] == self.asked[step]

    @invariant()
    def there_is_one_request_at_a_time(self):
        assert len(self.open) <= 1
        sent = self.transcript.early.sent
        assert [sent.step if sent else None] == (self.open or [None])

    @invariant()
    def a_restart_finds_the_same(self):
        if self.records is not None:
            again = fold(*self.records)
            assert usable(again) == usable(self.transcript)
            assert again.early.sent == self.transcript.early.sent
            assert again.early.may_begin == self.transcript.early.may_begin


def test_no_summary_is_used_for_another_history_in_any_order():
    run_state_machine_as_test(Session, settings=settings(max_examples=200, stateful_step_count=25))
