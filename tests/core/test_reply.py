"""Assembling a reply: live events, and the message so far at any moment."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zotd.core import reply
from zotd.core.reply import (
    Assembler,
    CallArgs,
    CallEnd,
    CallStart,
    Counted,
    Reasoning,
    RequestAccepted,
    Signature,
    Stopped,
    TextEnd,
    ThinkingChunk,
)
from zotd.wire import content, events
from zotd.wire.content import Tokens, ToolCall


def assembler(session=None):
    ids = count(1)
    return Assembler(session, lambda: f"c_{next(ids)}")


def text(words):
    return reply.TextChunk(words)


def fed(*parts):
    made = assembler()
    made.feed(parts)
    return made


def call(index, name, args, *, pieces=1):
    """A complete call, with its arguments in this many pieces."""
    size = max(1, -(-len(args) // pieces))
    cuts = [CallArgs(index, args[start : start + size]) for start in range(0, len(args), size)]
    return [CallStart(index, name), *cuts, CallEnd(index)]


# --- text -----------------------------------------------------------------------------------------------------


def test_text_is_shown_as_it_arrives_and_becomes_one_block():
    made = assembler("s_1")
    assert made.feed([RequestAccepted(), text("Wal")]) == [events.TextDelta("Wal", session="s_1")]
    assert made.feed([text("rus"), text("!")]) == [
        events.TextDelta("rus", session="s_1"),
        events.TextDelta("!", session="s_1"),
    ]
    assert made.message() == [content.Text("Walrus!")]
    assert made.text() == "Walrus!"


def test_blocks_keep_the_order_in_which_they_began():
    made = fed(text("a"), *call(0, "read", "{}"), text("b"), text("c"), *call(1, "grep", "{}"), Stopped("tool_use"))
    assert made.message() == [
        content.Text("a"),
        ToolCall("c_1", "read", {}),
        content.Text("bc"),
        ToolCall("c_2", "grep", {}),
    ]
    assert made.text() == "abc"


def test_an_empty_reply_is_an_empty_message():
    made = fed(RequestAccepted(), Stopped("end_turn"))
    assert (made.message(), made.text(), made.stop, made.tokens) == ([], "", "end_turn", None)


def test_on_stdio_events_carry_no_session():
    assert assembler().feed([text("x")]) == [events.TextDelta("x")]


def test_texts_that_the_vendor_keeps_apart_stay_apart():
    made = fed(text("I "), text("look."), TextEnd("m_1", "commentary"), text("Yes"), TextEnd("m_2"), text("."))
    assert made.message() == [
        content.Text("I look.", "m_1", "commentary"),
        content.Text("Yes", "m_2"),
        content.Text("."),
    ]
    assert made.text() == "I look.Yes."


def test_the_end_of_a_text_that_never_began_is_nothing():
    assert fed(TextEnd("m_1"), *call(0, "read", "{}"), TextEnd("m_2")).message() == [ToolCall("c_1", "read", {})]


# --- calls ----------------------------------------------------------------------------------------------------


def test_a_call_is_shown_while_it_arrives_with_an_id_of_ours():
    assert assembler("s_1").feed(call(7, "bash", '{"command": "ls"}', pieces=2)) == [
        events.ToolUseStart("c_1", "bash", session="s_1"),
        events.ToolUseArgs("c_1", '{"command', session="s_1"),
        events.ToolUseArgs("c_1", '": "ls"}', session="s_1"),
        events.ToolUseEnd("c_1", session="s_1"),
    ]


def test_interleaved_calls_are_distinguished_by_index():
    made = fed(
        CallStart(0, "read"),
        CallStart(1, "grep"),
        CallArgs(1, '{"pattern"'),
        CallArgs(0, '{"path":'),
        CallArgs(1, ':"x"}'),
        CallEnd(1),
        CallArgs(0, '"a"}'),
        CallEnd(0),
        Stopped("tool_use"),
    )
    assert made.message() == [ToolCall("c_1", "read", {"path": "a"}), ToolCall("c_2", "grep", {"pattern": "x"})]


def test_a_vendor_may_reuse_an_index():
    made = fed(*call(0, "read", '{"path":"a"}'), *call(0, "read", '{"path":"b"}'), Stopped("tool_use"))
    assert made.message() == [ToolCall("c_1", "read", {"path": "a"}), ToolCall("c_2", "read", {"path": "b"})]


@pytest.mark.parametrize("nothing", ["", " \n"])
def test_missing_arguments_become_an_empty_object(nothing):
    assert fed(*call(0, "pwd", nothing), Stopped("tool_use")).message() == [ToolCall("c_1", "pwd", {})]


def test_an_unfinished_call_is_omitted():
    made = fed(text("so"), CallStart(0, "bash"), CallArgs(0, '{"command": "rm'))
    assert made.message() == [content.Text("so")]
    assert made.broken_calls() == frozenset()
    assert [(open_.name, "".join(open_.args)) for open_ in made.open_calls()] == [("bash", '{"command": "rm')]


def test_an_unfinished_call_is_omitted_even_from_a_complete_reply():
    assert fed(CallStart(0, "bash"), CallArgs(0, "{}"), Stopped("tool_use")).message() == []


BROKEN = ['{"a":', "[]", "null", '"x"', "1", "{} {}", "{'a': 1}", '{"a": NaN}', "[" * 100_000, '{"a":' * 100_000]


@pytest.mark.parametrize("args", BROKEN, ids=lambda args: args[:8])
def test_a_call_with_broken_arguments_is_kept_for_its_error_result(args):
    made = fed(*call(0, "read", '{"path":"a"}'), *call(1, "bash", args), Stopped("tool_use"))
    assert made.message() == [ToolCall("c_1", "read", {"path": "a"}), ToolCall("c_2", "bash", {})]
    assert made.broken_calls() == {"c_2"}


@pytest.mark.parametrize("stop", ["length", None])
def test_a_call_with_broken_arguments_is_omitted_from_a_cut_reply(stop):
    parts = call(0, "bash", '{"a":')
    made = fed(text("so"), *parts, *([Stopped(stop)] if stop else []))
    assert made.message() == [content.Text("so")]


def test_a_complete_call_is_kept_if_the_reply_is_cut_after_it():
    made = fed(*call(0, "read", '{"path":"a"}'), CallStart(1, "read"), Stopped("length"))
    assert made.message() == [ToolCall("c_1", "read", {"path": "a"})]


# --- thinking -------------------------------------------------------------------------------------------------


THOUGHT = ThinkingChunk("let "), ThinkingChunk("me see"), Signature("signed"), text("yes"), Stopped("end_turn")


def test_thinking_is_shown_as_it_arrives_and_kept_with_its_signature():
    made = assembler("s_1")
    assert made.feed(THOUGHT) == [
        events.ThinkingDelta("let ", session="s_1"),
        events.ThinkingDelta("me see", session="s_1"),
        events.TextDelta("yes", session="s_1"),
    ]
    assert made.message() == [content.Thinking("let me see", "signed"), content.Text("yes")]
    assert made.text() == "yes"


def test_thinking_is_not_shown_on_stdio():
    assert assembler().feed(THOUGHT) == [events.TextDelta("yes")]


def test_every_block_of_thinking_has_its_own_signature():
    made = fed(
        ThinkingChunk("a"), Signature("1"), *call(0, "pwd", ""), ThinkingChunk("b"), Signature("2"), Stopped("tool_use")
    )
    assert made.message() == [
        content.Thinking("a", "1"),
        ToolCall("c_1", "pwd", {}),
        content.Thinking("b", "2"),
    ]


def test_redacted_thinking_is_kept_unchanged():
    assert fed(Signature(redacted="opaque")).message() == [content.Thinking("", "", "opaque")]


@pytest.mark.parametrize(("summary", "text"), [(["let me see"], ""), ([], "let me see")])
def test_encrypted_reasoning_keeps_its_summary_apart_from_its_text(summary, text):
    made = fed(ThinkingChunk("let "), ThinkingChunk("me see"), Reasoning("r_1", "opaque", summary, "openai/m"))
    assert made.message() == [content.Thinking(text, item="r_1", encrypted="opaque", summary=summary, model="openai/m")]
    assert made.length() == len("let me see") + len("opaque")


def test_cut_thinking_is_omitted_because_vendors_require_a_signature():
    assert fed(ThinkingChunk("a"), Signature("1"), ThinkingChunk("b")).message() == [content.Thinking("a", "1")]


# --- token counts ---------------------------------------------------------------------------------------------


def test_the_last_token_count_counts():
    made = fed(Counted(Tokens(input=10)), text("x"), Counted(Tokens(input=10, output=5)), Stopped("end_turn"))
    assert made.tokens == Tokens(input=10, output=5)


def test_an_incomplete_reply_has_no_stop_reason():
    assert fed(RequestAccepted(), text("x")).stop is None


# --- chunks ---------------------------------------------------------------------------------------------------

words = st.text(max_size=4)
whole_calls = st.builds(
    lambda name, args, pieces: (name, args, pieces),
    st.sampled_from(["bash", "read"]),
    st.sampled_from(["", "{}", '{"a": [1, 2]}', '{"a":', "[]"]),
    st.integers(1, 4),
)
blocks = st.lists(
    st.one_of(words.map(lambda word: ("text", word)), words.map(lambda word: ("thinking", word)), whole_calls),
    max_size=6,
)


def parts_of(shape):
    parts: list[reply.Part] = [RequestAccepted()]
    for index, block in enumerate(shape):
        match block:
            case ("text", word):
                parts.append(text(word))
            case ("thinking", word):
                parts += [ThinkingChunk(word), Signature(f"signature {index}")]
            case (name, args, pieces):
                parts += call(index, name, args, pieces=pieces)
    return [*parts, Counted(Tokens(1, 2)), Stopped("tool_use")]


def outcome(made):
    return made.message(), made.text(), made.broken_calls(), made.stop, made.tokens


@given(blocks, st.data())
def test_events_and_message_do_not_depend_on_the_chunks(shape, data):
    parts = parts_of(shape)
    at_once, in_chunks = assembler(), assembler()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(parts)), max_size=5)))
    chunks = [parts[start:end] for start, end in zip([0, *cuts], [*cuts, len(parts)], strict=True)]
    shown = [event for chunk in chunks for event in in_chunks.feed(chunk)]
    assert shown == at_once.feed(parts)
    assert outcome(in_chunks) == outcome(at_once)


@given(blocks)
def test_a_reply_of_single_characters_gives_the_same_message(shape):
    assert outcome(fed(*(piece for part in parts_of(shape) for piece in crumbs(part)))) == outcome(
        fed(*parts_of(shape))
    )


def crumbs(part):
    match part:
        case reply.TextChunk(words):
            return [text(char) for char in words] or [part]
        case ThinkingChunk(words):
            return [ThinkingChunk(char) for char in words]
        case CallArgs(index, words):
            return [CallArgs(index, char) for char in words]
        case _:
            return [part]


@given(blocks, st.data())
def test_a_reply_cut_anywhere_contains_only_complete_calls(shape, data):
    parts = parts_of(shape)
    cut = fed(*parts[: data.draw(st.integers(0, len(parts) - 1))])
    whole = fed(*parts)
    calls = [block for block in cut.message() if isinstance(block, ToolCall)]
    assert all(block in whole.message() and block.id not in cut.broken_calls() for block in calls)
    assert whole.text().startswith(cut.text())


def test_arguments_nested_too_deeply_count_as_broken():
    made = assembler()
    deep = '{"a":' + "[" * 100 + "]" * 100 + "}"
    made.feed([CallStart(0, "read"), CallArgs(0, deep), CallEnd(0), Stopped("tool_use")])
    assert made.broken_calls() == {"c_1"}
    assert made.message() == [ToolCall("c_1", "read", {})]
