"""Folding records that end with a crash: which calls need a result, and what can be resumed."""

import pytest

from tests.core.folding import attempt, call, cut, fold, prompt, reply, result, resumed, seen, started, usage
from zotd.core import records
from zotd.core.closings import INTERRUPTED, NOT_RUN, closings, unrepeatable
from zotd.testing.histories import TIME, assert_legal
from zotd.wire.content import Text


def calling(*keys):
    """The records up to a reply with these calls."""
    return prompt("i"), attempt(key="i"), reply(*map(call, keys), stop="tool_use")


def texts(results):
    return [(one.call_id, one.content[0].text) for one in results]


def test_every_call_that_is_not_resumed_gets_a_result():
    transcript = fold(*calling("a", "b", "c"), started("b"), result("a"))
    found = closings(transcript, TIME)
    assert [(item.call_id, item.is_error, item.run, item.name) for item in found] == [
        ("b", True, "r", "bash"),
        ("c", True, "r", "bash"),
    ]
    assert texts(found) == [("b", INTERRUPTED), ("c", NOT_RUN)]
    assert [item.unknown for item in found] == [True, False]


@pytest.mark.parametrize(
    ("replay", "is_repeated"), [("never", False), ("idempotent", True), ("reconcile", True), ("of a newer zot", False)]
)
def test_a_started_call_is_repeated_if_its_replay_class_permits(replay, is_repeated):
    transcript = fold(*calling("a"), started("a", replay=replay))
    assert texts(unrepeatable(transcript, TIME)) == ([] if is_repeated else [("a", INTERRUPTED)])
    assert texts(closings(transcript, TIME)) == [("a", INTERRUPTED)]


def test_calls_without_a_start_record_may_start_again():
    assert unrepeatable(fold(*calling("a", "b")), TIME) == []


@pytest.mark.parametrize("nested", ["never", "idempotent"])
@pytest.mark.parametrize("own", [[], [started("a", replay="idempotent")]], ids=["safe", "idempotent"])
def test_a_call_is_not_repeated_if_a_nested_call_has_started(own, nested):
    within = started("n", within="a", replay=nested), started("m", within="of a command", replay=nested)
    transcript = fold(*calling("a", "b"), *own, *within)
    assert texts(unrepeatable(transcript, TIME)) == [("a", INTERRUPTED)]
    assert texts(closings(transcript, TIME)) == [("a", INTERRUPTED), ("b", NOT_RUN)]


def test_a_repeated_call_keeps_its_arguments_and_operation_key():
    first = records.CallStarted(
        time=TIME, run="r", call_id="a", name="bash", args={"n": 2}, replay="idempotent", operation_key="o"
    )
    transcript = fold(*calling("a", "b"), first)
    assert [one.id for one in transcript.open_calls] == ["a", "b"]
    assert transcript.started == {"a": first}
    transcript.apply(result("a"))
    assert (transcript.started, [one.id for one in transcript.open_calls]) == ({}, ["b"])


def test_closing_open_calls_twice_has_no_further_effect():
    transcript = fold(*calling("a"))
    for closing in closings(transcript, TIME):
        transcript.apply(closing)
    assert closings(transcript, TIME) == []
    assert_legal(transcript.messages)


def test_an_unknown_outcome_is_flagged_until_the_next_reply():
    transcript = fold(*calling("a"), result("a"))
    assert not transcript.has_unknown
    transcript = fold(*calling("a", "b"), result("a", unknown=True), result("b"))
    assert transcript.has_unknown
    for item in (attempt(2), reply(Text("I see"))):
        transcript.apply(item)
    assert not transcript.has_unknown


def test_a_request_is_in_flight_until_usage_reply_or_end_is_recorded():
    sent = attempt(2)
    assert fold(prompt("i"), attempt(key="i"), reply(), sent, attempt(2, answered=True)).in_flight == sent
    note = records.Note(time=TIME, level="error", text="no")
    for end in (usage(), reply(Text("hi")), note, cut()):
        assert fold(prompt("i"), sent, end).in_flight is None
    assert fold(prompt("i"), resumed()).in_flight is None


def test_a_request_awaits_its_reply_until_a_record_says_that_it_has_begun():
    sent = attempt(2)
    assert fold(prompt("i"), attempt(key="i"), reply(), sent).awaits_reply
    for begun in (attempt(2, answered=True), usage(), reply(Text("hi")), cut()):
        assert not fold(prompt("i"), sent, begun).awaits_reply
    assert not fold(prompt("i"), attempt(1, number=0)).awaits_reply  # a summary begins without an event


UNFINISHED = {
    "the prompt": [prompt("i"), attempt(key="i")],
    "a call": calling("a"),
    "a result": [*calling("a"), result("a")],
    "a reply that was cut": [prompt("i"), attempt(key="i"), reply(Text("I wi"), stop="error")],
    "a reply that never came": [prompt("i"), attempt(key="i"), reply(stop="aborted")],
}


@pytest.mark.parametrize("last", UNFINISHED)
def test_a_transcript_without_a_final_reply_can_be_resumed(last):
    transcript = fold(*UNFINISHED[last], cut())
    assert transcript.can_resume
    assert transcript.interrupted
    transcript.apply(resumed())
    assert transcript.run_open
    assert not transcript.interrupted


@pytest.mark.parametrize(
    "history",
    [
        [],
        [prompt("i"), attempt(key="i"), reply(Text("done"))],
        [*calling("a"), records.Clear(time=TIME)],
    ],
    ids=["nothing", "a reply", "cleared"],
)
def test_a_transcript_with_a_final_reply_cannot_be_resumed(history):
    transcript = fold(*history, cut())
    assert not transcript.can_resume
    assert not transcript.interrupted


def test_a_resumed_run_drops_the_cut_reply():
    half = reply(Text("I wi"), stop="aborted")
    assert seen(fold(prompt("i"), attempt(key="i"), half, resumed())) == ["user: do it"]
    assert seen(fold(prompt("i"), attempt(key="i"), reply(stop="aborted"), resumed())) == ["user: do it"]
    whole = fold(*calling("a"), result("a"), attempt(2), reply(Text("done")), resumed())
    assert seen(whole)[-1] == "assistant: done"


def test_the_next_prompt_follows_the_cut_reply():
    half = reply(Text("I wi"), stop="aborted")
    transcript = fold(prompt("i"), attempt(key="i"), half, prompt("j", "no"), attempt(key="j"), resumed())
    assert seen(transcript) == ["user: do it", "assistant: I wi", "user: no"]


def test_a_run_is_open_from_its_first_attempt_to_its_end_record():
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


def test_a_guards_note_does_not_end_the_run():
    note = records.Note(time=TIME, level="warn", text="guard blocked a call of bash")
    assert fold(prompt("i"), attempt(key="i"), note).run_open


def test_a_cut_run_is_over_when_its_interruption_is_recorded():
    tool = records.Interrupted(time=TIME, what="tool", text="cut", call_id="a")
    transcript = fold(prompt("i"), attempt(key="i"), tool)
    assert transcript.run_open
    assert not transcript.interrupted
    transcript.apply(cut())
    assert not transcript.run_open
    assert transcript.interrupted
