"""A fold knows the record of each message, so that a restart reads no more records than needed."""

from zotd.core import model_questions, records
from zotd.core.fold import Fold, outlined
from zotd.core.transcript import Transcript
from zotd.wire.content import Image, Text, Thinking, ToolCall

TIME = "2026-11-21T20:11:18.919Z"


def attempt(key=None, **fields):
    return records.Attempt(time=TIME, run="r", step=1, number=1, provider="p", model="m", input=key, **fields)


def said(key):
    return records.Input(time=TIME, id=key, content=[Text(key)])


def reply(*content, stop="end_turn"):
    return records.Reply(time=TIME, run="r", step=1, content=list(content), stop=stop)


def folded(*found):
    fold = Fold(Transcript())
    fold.replay(enumerate(found, 1), [])
    return fold


def compacted(kept):
    return records.Compaction(time=TIME, summary="short", kept=kept)


def test_a_dropped_reply_no_longer_has_a_record_number():
    went_on = [said("i"), attempt("i"), reply(Text("ha"), stop="aborted"), attempt(resumes=True), reply(Text("half"))]
    fold = folded(*went_on, compacted(kept=2))
    assert [message.content for message in fold.transcript.messages[1:]] == [[Text("i")], [Text("half")]]
    assert fold.base == 1


def test_inputs_that_join_a_run_keep_their_own_record_numbers():
    fold = folded(said("i"), attempt("i"), said("j"), said("k"), attempt(steered=["j", "k"]), compacted(kept=1))
    assert fold.transcript.messages[-1].content == [Text("k")]
    assert fold.base == 4


def test_a_question_beside_the_conversation_is_read_again_until_it_is_billed():
    asked = records.Attempt(
        time=TIME, run="", step=0, number=0, provider="p", model="m", asked_by=model_questions.SIDE_QUESTION
    )
    fold = folded(said("i"), attempt("i"), reply(Text("ha")), asked, compacted(kept=0))
    assert (fold.base, fold.transcript.rest) == (4, "running")
    bill = records.UsageRow(
        time=TIME, run="", step=0, provider="p", model="m", tokens=None, purpose=model_questions.SIDE_QUESTION
    )
    fold.apply(6, bill)
    assert (fold.base, fold.transcript.rest, fold.transcript.beside) == (5, "idle", {})


def test_a_fork_has_no_pending_inputs_of_its_origin():
    fold = folded(said("i"), attempt("i"), said("j"), compacted(kept=0), records.ForkRow(time=TIME, session="s", at=1))
    assert (fold.transcript.waiting, fold.transcript.requests, fold.transcript.run_open) == ({}, {}, False)
    assert fold.base == 4


ONLY_READ = records.AllowedTools("look", ["Read"])


def limited(key):
    return records.Input(time=TIME, id=key, content=[Text(key)], allowed_tools=ONLY_READ)


def test_what_a_run_may_call_is_that_of_the_input_that_it_began_with():
    begun = [
        said("i"),
        attempt("i"),
        reply(Text("done")),
        limited("j"),
        said("k"),
        attempt("j"),
        attempt(steered=["k"]),
    ]
    assert [folded(*begun[:count]).transcript.allowed_tools for count in (3, 5, 6, 7)] == [
        None,
        None,
        ONLY_READ,
        ONLY_READ,
    ]
    assert folded(*begun, said("l"), attempt("l")).transcript.allowed_tools is None
    assert folded(*begun, records.Clear(time=TIME)).transcript.allowed_tools is None


def test_a_rewind_brings_back_what_the_run_of_that_time_may_call():
    first, second = [said("i"), attempt("i")], [limited("j"), attempt("j")]
    fold = folded(*second, *first)
    fold.go_back(folded(*second))
    assert fold.transcript.allowed_tools == ONLY_READ
    replayed = Fold(Transcript())
    replayed.replay(enumerate([*first, *second], 1), [(3, 4)])
    assert (len(replayed.transcript.messages), replayed.transcript.allowed_tools) == (1, None)


def test_an_outlined_record_folds_the_same_without_text():
    call = ToolCall("c", "look", {"path": "x" * 1000})
    whole = [
        records.Input(time=TIME, id="i", content=[Text("x" * 1000), Image("image/png", 3, "x" * 1000)]),
        attempt("i"),
        reply(Thinking("x" * 1000), Text("x" * 1000), call, stop="tool_use"),
        records.CallResult(time=TIME, run="r", call_id="c", name="look", is_error=False, content=[Text("x" * 1000)]),
        reply(Text("x" * 1000)),
        reply(),
        compacted(kept=1),
    ]
    for end in range(len(whole) + 1):
        one, other = folded(*whole[:end]), folded(*map(outlined, whole[:end]))
        assert [message.role for message in one.transcript.messages] == [m.role for m in other.transcript.messages]
        assert (one.base, one.is_legal) == (other.base, other.is_legal)
        assert "xx" not in str(other.transcript.messages)


def news(note="the plan has changed"):
    return records.PlanChange(time=TIME, plan=None, edit_note=note)


def test_news_about_the_plan_become_a_message_with_the_next_request():
    begun = [said("i"), attempt("i"), news("old"), news(), reply(Text("a")), said("j"), attempt("j")]
    fold = folded(*begun[:5])
    assert [message.role for message in fold.transcript.messages] == ["user", "assistant"]
    fold = folded(*begun)
    assert [message.content for message in fold.transcript.messages] == [
        [Text("i")],
        [Text("a")],
        [Text("the plan has changed")],
        [Text("j")],
    ]
    assert folded(*begun, compacted(kept=2)).base == 4
    assert folded(*begun, compacted(kept=1)).base == 6


def test_news_that_the_model_has_not_been_told_are_read_again_after_a_restart():
    begun = [said("i"), attempt("i"), reply(Text("a")), news(), compacted(kept=0)]
    assert folded(*begun).base == 4
    assert folded(*begun, attempt()).base == 4
    assert folded(*begun, attempt(), compacted(kept=0)).base == 7


def test_news_that_come_while_a_request_is_retried_replace_the_cut_reply():
    cut = [said("i"), attempt("i"), reply(Text("ha"), stop="error"), news()]
    fold = folded(*cut, records.Attempt(time=TIME, run="r", step=1, number=2, provider="p", model="m"))
    assert [message.content for message in fold.transcript.messages] == [[Text("i")], [Text("the plan has changed")]]
    fold.apply(6, compacted(kept=2))
    assert fold.base == 1
    fold.apply(7, compacted(kept=1))
    assert fold.base == 4


def test_news_of_an_abandoned_branch_are_not_told():
    begun = [said("i"), attempt("i"), reply(Text("a"))]
    fold = Fold(Transcript())
    fold.replay(enumerate([*begun, news(), said("j"), attempt("j")], 1), [(4, 4)])
    assert [Text("the plan has changed")] not in [message.content for message in fold.transcript.messages]
    fold = folded(*begun, news())
    fold.go_back(folded(*begun))
    assert fold.transcript.plan_news is None
    assert folded(*begun, news(), records.Clear(time=TIME)).transcript.plan_news is None
