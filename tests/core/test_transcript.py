"""The fold of a journal: what the model sees, what waits, and what a crash left to repair."""

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from zotd.core import records
from zotd.core.records import AnyRecord
from zotd.core.transcript import INTERRUPTED, NOT_RUN, SUMMARY_HEAD, Transcript
from zotd.testing.histories import TIME, Scribe
from zotd.wire.content import Message, Text, Thinking, ToolCall, ToolResult


def prompt(key, text="do it"):
    return records.Input(time=TIME, id=key, content=[Text(text)])


def attempt(step=1, *, key=None, answered=False, number=1):
    return records.Attempt(
        time=TIME, run="r", step=step, number=number, provider="p", model="m", input=key, answered=answered
    )


def reply(*content, stop="end_turn"):
    return records.Reply(time=TIME, run="r", step=1, content=list(content), stop=stop)


def call(key):
    return ToolCall(key, "bash", {"command": key})


def started(key, within=None):
    return records.CallStarted(time=TIME, run="r", call_id=key, name="bash", args={}, replay="never", within=within)


def result(key, text="done"):
    return records.CallResult(time=TIME, run="r", call_id=key, name="bash", is_error=False, content=[Text(text)])


def compaction(kept):
    return records.Compaction(time=TIME, summary="short", kept=kept)


def fold(*items):
    transcript = Transcript()
    for item in items:
        transcript.apply(item)
    return transcript


def seen(transcript):
    """The messages in short: a word for each block."""
    return [f"{message.role}: {' '.join(map(word, message.content))}" for message in transcript.messages]


def word(block):
    match block:
        case Text(text):
            return text
        case ToolCall(key):
            return f"call {key}"
        case ToolResult(key, _, [Text(text)]):
            return f"{key} {text}"
        case _:
            return type(block).__name__.lower()


def assert_legal(messages):
    """Each call has exactly one result, which follows its message before anything else does."""
    assert not messages or messages[0].role == "user"
    seen_calls: set[str] = set()
    unanswered: set[str] = set()
    for message in messages:
        if message.role == "tool":
            [block] = message.content
            assert isinstance(block, ToolResult)
            unanswered.remove(block.call_id)
            continue
        assert not unanswered
        calls = [block.id for block in message.content if isinstance(block, ToolCall)]
        assert message.role == "assistant" or not calls
        assert message.content
        assert len(calls) == len(set(calls))
        assert seen_calls.isdisjoint(calls)
        unanswered.update(calls)
        seen_calls.update(calls)
    assert not unanswered


# --- what the model sees --------------------------------------------------------------------------------------


def test_an_accepted_input_waits_until_an_attempt_names_it():
    transcript = fold(prompt("i"))
    assert seen(transcript) == []
    assert list(transcript.waiting) == ["i"]
    transcript.apply(attempt(key="i"))
    assert seen(transcript) == ["user: do it"]
    assert not transcript.waiting


def test_a_message_has_the_time_of_its_record():
    first = records.Input(time="2026-01-01T00:00:00.000Z", id="i", content=[Text("x")])
    assert fold(first, attempt(key="i")).messages == [Message("user", [Text("x")], "2026-01-01T00:00:00.000Z")]


def test_a_repeated_attempt_says_the_prompt_once():
    transcript = fold(prompt("i"), attempt(key="i"), attempt(number=2), attempt(answered=True), attempt(key="i"))
    assert seen(transcript) == ["user: do it"]


def test_calls_and_results_follow_in_the_order_of_the_records():
    transcript = fold(
        prompt("i"),
        attempt(key="i"),
        reply(Text("look"), call("a"), call("b"), stop="tool_use"),
        result("b"),
        result("a"),
    )
    assert seen(transcript) == ["user: do it", "assistant: look call a call b", "tool: b done", "tool: a done"]
    assert transcript.repairs(TIME) == []


def test_a_second_result_of_a_call_is_dropped():
    transcript = fold(
        prompt("i"), attempt(key="i"), reply(call("a"), stop="tool_use"), result("a", "one"), result("a", "two")
    )
    assert seen(transcript)[-1] == "tool: a one"


def test_a_result_without_a_call_is_dropped():
    assert seen(fold(prompt("i"), attempt(key="i"), result("a"))) == ["user: do it"]


def test_an_empty_reply_is_no_message():
    assert seen(fold(prompt("i"), attempt(key="i"), reply(stop="aborted"))) == ["user: do it"]


def test_thinking_is_kept_because_the_vendor_wants_it_back():
    thought = Thinking("hm", "signed")
    assert fold(prompt("i"), attempt(key="i"), reply(thought, Text("yes"))).messages[1].content[0] == thought


def test_a_summary_stands_for_all_but_the_kept_messages():
    transcript = fold(prompt("i"), attempt(key="i"), reply(Text("one")), compaction(1))
    assert seen(transcript) == [f"user: {SUMMARY_HEAD}short", "assistant: one"]


def test_a_summary_may_stand_for_everything():
    transcript = fold(prompt("i"), attempt(key="i"), reply(Text("one")), compaction(0))
    assert seen(transcript) == [f"user: {SUMMARY_HEAD}short"]


def test_a_message_keeps_its_identity_so_that_providers_may_remember_its_encoding():
    transcript = fold(prompt("i"), attempt(key="i"), reply(Text("one")))
    before = transcript.messages[1]
    transcript.apply(compaction(1))
    transcript.apply(records.Note(time=TIME, level="info", text="x"))
    assert transcript.messages[1] is before


def test_after_clear_the_model_sees_nothing_and_inputs_still_wait():
    transcript = fold(
        prompt("i"), attempt(key="i"), reply(call("a"), stop="tool_use"), prompt("j"), records.Clear(time=TIME)
    )
    assert seen(transcript) == []
    assert list(transcript.waiting) == ["j"]
    assert transcript.repairs(TIME) == []


# --- the queue ------------------------------------------------------------------------------------------------


def test_the_queue_has_the_order_that_was_recorded_last():
    order = records.QueueOrder(time=TIME, order=["k", "i"], held=True)
    transcript = fold(prompt("i"), prompt("j"), prompt("k"), order)
    assert list(transcript.waiting) == ["k", "i"]
    assert transcript.held


def test_an_order_that_names_an_unknown_input_does_not_invent_it():
    assert not fold(records.QueueOrder(time=TIME, order=["gone"], held=False)).waiting


# --- after a crash --------------------------------------------------------------------------------------------


def test_every_cut_call_gets_a_result_not_just_the_first():
    transcript = fold(
        prompt("i"),
        attempt(key="i"),
        reply(call("a"), call("b"), call("c"), stop="tool_use"),
        started("b"),
        result("a"),
    )
    cut = transcript.repairs(TIME)
    assert [(item.call_id, item.is_error, item.run, item.name) for item in cut] == [
        ("b", True, "r", "bash"),
        ("c", True, "r", "bash"),
    ]
    assert [item.content for item in cut] == [[Text(INTERRUPTED)], [Text(NOT_RUN)]]


def test_a_call_counts_as_started_when_something_unsafe_was_started_within_it():
    transcript = fold(
        prompt("i"),
        attempt(key="i"),
        reply(call("a"), call("b"), stop="tool_use"),
        started("n", within="a"),
        started("m", within="of a command"),
    )
    assert [(one.call_id, one.content) for one in transcript.repairs(TIME)] == [
        ("a", [Text(INTERRUPTED)]),
        ("b", [Text(NOT_RUN)]),
    ]


def test_repaired_twice_is_repaired_once():
    transcript = fold(prompt("i"), attempt(key="i"), reply(call("a"), stop="tool_use"))
    for repair in transcript.repairs(TIME):
        transcript.apply(repair)
    assert transcript.repairs(TIME) == []
    assert_legal(transcript.messages)


def test_a_run_is_open_from_its_first_attempt_to_its_last_record():
    transcript = fold(prompt("i"))
    assert not transcript.run_open
    for item in (attempt(key="i"), attempt(answered=True), reply(call("a"), stop="tool_use"), result("a"), attempt(2)):
        transcript.apply(item)
        assert transcript.run_open
        assert transcript.run == "r"
    transcript.apply(reply(Text("done")))
    assert not transcript.run_open


def test_a_failed_or_aborted_run_is_open_until_its_note():
    for stop in ("error", "aborted"):
        transcript = fold(prompt("i"), attempt(key="i"), reply(Text("so"), stop=stop))
        assert transcript.run_open
        transcript.apply(records.Note(time=TIME, level="info", text=stop))
        assert not transcript.run_open


def test_what_a_guard_has_done_does_not_end_the_run():
    note = records.Note(time=TIME, level="warn", text="guard blocked a call of bash")
    assert fold(prompt("i"), attempt(key="i"), note).run_open


def test_a_repaired_run_is_not_open():
    cut = records.Interrupted(time=TIME, what="run", text="cut")
    assert not fold(prompt("i"), attempt(key="i"), cut).run_open


# --- any history ----------------------------------------------------------------------------------------------


choices = st.lists(st.integers(0, 59), min_size=40, max_size=120)
lives = st.lists(st.tuples(st.integers(1, 20), st.integers(0, 4)), min_size=1, max_size=3)
"""How many commits, and records of one more, the session lives to see, each time it is started."""


def scribe_of(transcript, choices):
    rest = iter(choices)
    return Scribe(lambda below: next(rest, 0) % below, transcript)


@given(choices, lives)
def test_provider_history_is_legal_after_any_crash_at_any_record(choices, lives):
    transcript = Transcript()
    written: list[AnyRecord] = []
    scribe = scribe_of(transcript, choices)
    for commits, torn in lives:
        life = scribe.life()
        for _ in range(commits):
            write(transcript, written, next(life))
        write(transcript, written, next(life)[:torn])
        write(transcript, written, scribe.repair())
        assert_legal(transcript.messages)
        assert not transcript.run_open
        assert transcript.repairs(TIME) == []
        assert_same(fold(*written), transcript)


def write(transcript, written, commit):
    for record in commit:
        transcript.apply(record)
        written.append(record)


def assert_same(one, other):
    assert one.messages == other.messages
    assert list(one.waiting.items()) == list(other.waiting.items())
    assert (one.held, one.run, one.run_open) == (other.held, other.run, other.run_open)


@given(choices)
def test_history_is_legal_whenever_the_model_is_asked(choices):
    transcript = Transcript()
    for commit in islice(scribe_of(transcript, choices).life(), 40):
        write(transcript, [], commit)
        if any(isinstance(record, records.Attempt) for record in commit):
            assert_legal(transcript.messages)
