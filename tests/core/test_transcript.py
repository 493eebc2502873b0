"""Folding records into what the model sees, and into the queue."""

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from tests.core.folding import attempt, call, compaction, fold, prompt, reply, result, resumed, seen
from zotd.core import records
from zotd.core.closings import closings, unrepeatable
from zotd.core.records import AnyRecord
from zotd.core.transcript import SUMMARY_HEAD, Transcript
from zotd.testing.histories import TIME, Scribe, assert_legal
from zotd.wire.content import Message, Text, Thinking

# --- what the model sees --------------------------------------------------------------------------------------


def test_an_input_is_pending_until_an_attempt_names_it():
    transcript = fold(prompt("i"))
    assert seen(transcript) == []
    assert list(transcript.waiting) == ["i"]
    transcript.apply(attempt(key="i"))
    assert seen(transcript) == ["user: do it"]
    assert not transcript.waiting


def test_a_message_has_the_time_of_its_record():
    first = records.Input(time="2026-01-01T00:00:00.000Z", id="i", content=[Text("x")])
    assert fold(first, attempt(key="i")).messages == [Message("user", [Text("x")], "2026-01-01T00:00:00.000Z")]


def test_a_retry_adds_the_prompt_only_once():
    transcript = fold(prompt("i"), attempt(key="i"), attempt(number=2), attempt(answered=True), attempt(key="i"))
    assert seen(transcript) == ["user: do it"]


def test_calls_and_results_keep_the_order_of_the_records():
    transcript = fold(
        prompt("i"),
        attempt(key="i"),
        reply(Text("look"), call("a"), call("b"), stop="tool_use"),
        result("b"),
        result("a"),
    )
    assert seen(transcript) == ["user: do it", "assistant: look call a call b", "tool: b done", "tool: a done"]
    assert closings(transcript, TIME) == []


def test_a_second_result_of_a_call_is_dropped():
    transcript = fold(
        prompt("i"), attempt(key="i"), reply(call("a"), stop="tool_use"), result("a", "one"), result("a", "two")
    )
    assert seen(transcript)[-1] == "tool: a one"


def test_a_result_without_a_call_is_dropped():
    assert seen(fold(prompt("i"), attempt(key="i"), result("a"))) == ["user: do it"]


def test_an_empty_reply_adds_no_message():
    assert seen(fold(prompt("i"), attempt(key="i"), reply(stop="aborted"))) == ["user: do it"]


def ran(*, context, name="r", said="$ ls"):
    """The records of a user's command."""
    return (
        records.ShellStarted(time=TIME, id=name, command="ls", context=context),
        records.ShellResult(time=TIME, id=name, context=context, content=[Text(said)]),
    )


def test_a_users_command_is_a_message_if_the_model_may_see_it():
    transcript = fold(*ran(context=True), *ran(context=False), prompt("i"), attempt(key="i"))
    assert seen(transcript) == ["user: $ ls", "user: do it"]
    assert transcript.shell is None


def test_a_users_command_is_open_until_it_has_a_result():
    started, result_of_it = ran(context=False)
    transcript = fold(started)
    assert transcript.shell == started
    transcript.apply(result_of_it)
    assert transcript.shell is None


def test_a_cut_reply_stays_if_a_users_command_follows():
    cut = fold(prompt("i"), attempt(key="i"), reply(Text("half"), stop="aborted"), *ran(context=True), resumed())
    assert seen(cut) == ["user: do it", "assistant: half", "user: $ ls"]


def test_thinking_is_kept_because_vendors_require_it():
    thought = Thinking("hm", "signed")
    assert fold(prompt("i"), attempt(key="i"), reply(thought, Text("yes"))).messages[1].content[0] == thought


def test_a_summary_replaces_all_but_the_kept_messages():
    transcript = fold(prompt("i"), attempt(key="i"), reply(Text("one")), compaction(1))
    assert seen(transcript) == [f"user: {SUMMARY_HEAD}short", "assistant: one"]


def test_a_summary_may_replace_everything():
    transcript = fold(prompt("i"), attempt(key="i"), reply(Text("one")), compaction(0))
    assert seen(transcript) == [f"user: {SUMMARY_HEAD}short"]


def test_messages_keep_their_identity_so_that_encodings_can_be_cached():
    transcript = fold(prompt("i"), attempt(key="i"), reply(Text("one")))
    before = transcript.messages[1]
    transcript.apply(compaction(1))
    transcript.apply(records.Note(time=TIME, level="info", text="x"))
    assert transcript.messages[1] is before


def test_clear_removes_the_messages_and_keeps_pending_inputs():
    transcript = fold(
        prompt("i"), attempt(key="i"), reply(call("a"), stop="tool_use"), prompt("j"), records.Clear(time=TIME)
    )
    assert seen(transcript) == []
    assert list(transcript.waiting) == ["j"]
    assert closings(transcript, TIME) == []
    assert not transcript.can_resume


# --- the queue ------------------------------------------------------------------------------------------------


def test_the_queue_has_the_last_recorded_order():
    order = records.QueueOrder(time=TIME, order=["k", "i"], held=True)
    transcript = fold(prompt("i"), prompt("j"), prompt("k"), order)
    assert list(transcript.waiting) == ["k", "i"]
    assert transcript.held


def test_unknown_inputs_in_a_queue_order_are_ignored():
    assert not fold(records.QueueOrder(time=TIME, order=["gone"], held=False)).waiting


def test_inputs_that_join_a_run_are_added_in_the_order_of_the_attempt():
    transcript = fold(prompt("i"), attempt(key="i"), reply(Text("one")), *(prompt(key, key) for key in "klj"))
    transcript.apply(attempt(2, steered=["l", "k"]))
    assert seen(transcript)[-2:] == ["user: l", "user: k"]
    assert list(transcript.waiting) == ["j"]
    assert transcript.run_open


def test_an_input_that_joins_twice_is_added_once():
    transcript = fold(prompt("i"), prompt("j"), attempt(key="i", steered=["j"]), attempt(2, steered=["j"]))
    assert seen(transcript) == ["user: do it"] * 2


# --- any history ----------------------------------------------------------------------------------------------


choices = st.lists(st.integers(0, 59), min_size=40, max_size=120)
lives = st.lists(st.tuples(st.integers(1, 20), st.integers(0, 4)), min_size=1, max_size=3)
"""For each start: how many commits the session writes, and how many records of the next one before the crash."""


def scribe_of(transcript, choices):
    rest = iter(choices)
    return Scribe(lambda below: next(rest, 0) % below, transcript)


@given(choices, lives)
def test_the_messages_are_valid_after_a_crash_at_any_record(choices, lives):
    transcript = Transcript()
    written: list[AnyRecord] = []
    scribe = scribe_of(transcript, choices)
    for commits, torn in lives:
        life = scribe.life()
        for _ in range(commits):
            write(transcript, written, next(life))
        write(transcript, written, next(life)[:torn])
        write(transcript, written, scribe.repair())
        assert not transcript.run_open
        assert transcript.in_flight is None
        assert unrepeatable(transcript, TIME) == []
        assert_same(fold(*written), transcript)
        assert_legal(fold(*written, *closings(transcript, TIME)).messages)
        going_on = [resumed(), *(result(one.id) for one in transcript.open_calls)]
        assert_legal(fold(*written, *going_on).messages)


def write(transcript, written, commit):
    for record in commit:
        transcript.apply(record)
        written.append(record)
        if is_request(record):
            assert_asked(transcript)


def is_request(record):
    return isinstance(record, records.Attempt) and record.number > 0  # 0: a compaction, or a resumed run


def assert_asked(transcript):
    assert_legal(transcript.messages)
    assert transcript.messages[-1].role != "assistant", "there is nothing to answer"


def assert_same(one, other):
    assert one.messages == other.messages
    assert list(one.waiting.items()) == list(other.waiting.items())
    assert (one.held, one.run, one.run_open) == (other.held, other.run, other.run_open)
    assert (one.interrupted, one.can_resume, one.has_unknown) == (
        other.interrupted,
        other.can_resume,
        other.has_unknown,
    )
    assert (one.open_calls, one.started) == (other.open_calls, other.started)


@given(choices, lives)
def test_every_request_has_valid_messages_that_ask_for_a_reply(choices, lives):
    transcript = Transcript()
    scribe = scribe_of(transcript, choices)
    for commits, _ in lives:
        for commit in islice(scribe.life(), commits):
            write(transcript, [], commit)
        write(transcript, [], scribe.repair())
