from zotd.channels.answers import ABORTED, COMPACTED, CUT_SHORT, INTERRUPTED, WITHDRAWN, WORDLESS, Answers, ChannelReply
from zotd.wire import events
from zotd.wire.content import Text, ToolCall

TIME = "2026-11-21T20:11:18.919Z"


def asked(key):
    return events.UserMessage([Text("?")], TIME, input=key, run="r")


def said(*texts):
    return events.AssistantMessage([Text(one) for one in texts], TIME)


def queued(*keys):
    return events.QueueChanged([events.QueueItem(key, "?", "", "queue") for key in keys], held=False)


def fold(*commits):
    answers = Answers()
    return [(answer.input, answer.text) for commit in commits for answer in answers.feed(commit)]


def test_the_last_words_of_a_run_are_its_answer():
    call = events.AssistantMessage([ToolCall("c", "read", {})], TIME)
    assert fold([asked("a"), said("Let me look.")], [call, said("It is ", "red."), events.Done("r")]) == [
        ("a", "It is red.")
    ]
    assert fold([asked("a"), said("Done that."), call, events.Done("r")]) == [("a", "Done that.")]
    assert fold([asked("a"), events.Done("r")]) == [("a", WORDLESS)]


def test_an_error_follows_the_text_that_was_written_before():
    assert fold([asked("a"), said("half"), events.Error("no key"), events.Done("r")]) == [
        ("a", "half\n\nThat went wrong: no key")
    ]
    assert fold([asked("a"), events.Error("no key"), events.Done("r")]) == [("a", "That went wrong: no key")]
    aborted = [events.TurnEnd("aborted"), events.Done("r")]
    assert fold([asked("a"), said("half"), *aborted]) == [("a", f"half\n\n{CUT_SHORT}")]
    assert fold([asked("a"), *aborted]) == [("a", ABORTED)]
    interrupted = [events.Interrupted("run", "…"), events.Done("r")]
    assert fold([asked("a"), said("half")], interrupted) == [("a", f"half\n\n{INTERRUPTED}")]


def test_one_run_leaves_nothing_to_the_next():
    first = [asked("a"), said("one"), events.TurnEnd("aborted"), events.Done("r")]
    assert fold(first, [asked("b"), events.Done("r")]) == [("a", f"one\n\n{CUT_SHORT}"), ("b", WORDLESS)]


def test_an_input_that_only_leaves_the_queue_was_withdrawn():
    assert fold([queued("a", "b")], [queued("b"), asked("a")], [queued()]) == [("b", WITHDRAWN)]


def test_a_compaction_is_told_apart_from_one_inside_a_run():
    assert fold([events.CompactDone("…"), events.Done("r")]) == [(None, COMPACTED)]
    assert fold([asked("a"), events.CompactDone("…")], [said("yes"), events.Done("r")]) == [("a", "yes")]
    assert Answers().feed([events.Error("no"), events.Done("r")]) == [ChannelReply("r", None, "That went wrong: no")]
