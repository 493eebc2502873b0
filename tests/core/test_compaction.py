"""What is summarised and kept; a call is never separated from its result."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zotd.core import compaction
from zotd.core.compaction import KEPT_MESSAGES, MAX_BLOCK_CHARS
from zotd.testing.histories import TIME
from zotd.wire.content import Image, Message, Text, Thinking, ToolCall, ToolResult


def message(role, *content):
    return Message(role, list(content), TIME)


def transcript(shape):
    """0 stands for a prompt, n for a reply with n - 1 calls and their results."""
    messages = []
    for number, calls in enumerate(shape):
        if calls == 0:
            messages.append(message("user", Text(f"prompt {number}")))
            continue
        keys = [f"c{number}.{index}" for index in range(calls - 1)]
        messages.append(message("assistant", Text("so"), *(ToolCall(key, "bash", {}) for key in keys)))
        messages += [message("tool", ToolResult(key, is_error=False, content=[Text("done")])) for key in keys]
    return messages


shapes = st.lists(st.integers(0, 8), max_size=8)


def calls_and_results(messages):
    blocks = [block for message in messages for block in message.content]
    return (
        {block.id for block in blocks if isinstance(block, ToolCall)},
        {block.call_id for block in blocks if isinstance(block, ToolResult)},
    )


# --- kept messages --------------------------------------------------------------------------------------------


@given(shapes)
def test_no_call_is_separated_from_its_result(shape):
    messages = transcript(shape)
    count = compaction.kept(messages)
    tail = messages[len(messages) - count :]
    assert not tail or tail[0].role in {"user", "assistant"}
    calls, results = calls_and_results(tail)
    assert calls == results


@given(shapes)
def test_a_few_new_messages_are_kept_and_at_least_one_is_summarised(shape):
    messages = transcript(shape)
    count = compaction.kept(messages)
    assert 0 <= count <= KEPT_MESSAGES
    assert count < len(messages) or not messages


@pytest.mark.parametrize(
    ("shape", "count"),
    [
        ([], 0),
        ([0], 0),
        ([0, 1], 1),
        ([0, 1, 0, 1, 0, 1], 4),
        ([0, 2, 1], 3),
        ([0, 4], 4),
        ([0, 5], 0),
        ([0, 5, 1], 1),
        ([0, 5, 0, 1], 2),
    ],
)
def test_the_number_of_kept_messages(shape, count):
    assert compaction.kept(transcript(shape)) == count


# --- the request ----------------------------------------------------------------------------------------------


def asked(*messages, instructions=""):
    [request] = compaction.request(messages, instructions)
    [block] = request.content
    assert (request.role, request.time) == ("user", TIME if messages else "")
    assert isinstance(block, Text)
    return block.text


def test_the_transcript_is_sent_as_text_so_that_the_model_calls_no_tools():
    text = asked(
        message("user", Text("mend it")),
        message("assistant", Text("I look"), ToolCall("c", "read", {"path": "a.py"})),
        message("tool", ToolResult("c", is_error=False, content=[Text("def f(): ...")])),
        message("tool", ToolResult("d", is_error=True, content=[Text("no such file")])),
    )
    assert text.startswith("<conversation>\n[user]\nmend it\n[assistant]\nI look\n(calls read with {'path': 'a.py'})\n")
    assert "[tool]\n(result: def f(): ...)\n[tool]\n(failed: no such file)\n</conversation>" in text


def test_thinking_is_omitted_and_images_are_described():
    text = asked(
        message("user", Image("image/png", 70, "AAAA"), Text("what is this?")),
        message("assistant", Thinking("hm", "signed"), Text("a door")),
    )
    assert "(an image, image/png, 70 bytes)\nwhat is this?" in text
    assert "[assistant]\na door" in text
    assert "hm" not in text
    assert "AAAA" not in text


def test_a_long_result_is_cut_in_the_middle():
    text = asked(message("tool", ToolResult("c", is_error=False, content=[Text("a" * 5000 + "b" * 5000)])))
    half = MAX_BLOCK_CHARS // 2
    assert f"(result: {'a' * half} … {10_000 - MAX_BLOCK_CHARS} characters left out … {'b' * half})" in text


def test_a_long_argument_is_cut_in_the_middle():
    text = asked(message("assistant", ToolCall("c", "write", {"text": "x" * 100_000})))
    assert len(text) < 2 * MAX_BLOCK_CHARS


def test_user_messages_are_not_cut():
    words = "word " * 2000
    assert words in asked(message("user", Text(words)))


def test_the_users_instructions_come_last():
    text = asked(message("user", Text("x")), instructions="keep the file names")
    assert text.endswith("The user asks in particular: keep the file names")
    assert "in particular" not in asked(message("user", Text("x")))


def test_a_request_can_be_made_for_an_empty_transcript():
    assert asked().startswith("<conversation>\n</conversation>")
