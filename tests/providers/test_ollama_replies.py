"""Ollama's own API: how its answers are read, whole or broken."""

import json

import pytest

from tests.providers.conftest import assembled, broken_off, parts_of
from zotd.core.reply import Counted, Stopped, TextChunk, ThinkingChunk
from zotd.core.retry import Failure
from zotd.providers.choice import ModelChoice
from zotd.providers.shared.limits import EVENT_BYTES
from zotd.wire.content import Tokens


@pytest.fixture
def connect(providers):
    return lambda server: providers.connect(ModelChoice("ollama", "m", base_url=server.url))


def lines(*bodies):
    return b"".join(json.dumps(body).encode() + b"\n" for body in bodies)


END = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}


async def test_a_reply_that_comes_whole_is_understood(connect, raw):
    message = {
        "thinking": "Hm.",
        "content": "I look.",
        "tool_calls": [{"function": {"name": "read", "arguments": {"path": "a"}}}],
    }
    async with raw(json.dumps({**END, "message": message, "prompt_eval_count": 7, "eval_count": 3}).encode()) as server:
        reply = await assembled(connect(server))
    thinking, text, call = reply.message()
    assert (thinking.text, text.text, call.name, call.args) == ("Hm.", "I look.", "read", {"path": "a"})
    assert (reply.stop, reply.tokens) == ("tool_use", Tokens(7, 3))


async def test_lines_may_be_cut_anywhere_also_inside_a_letter(connect, raw):
    body = lines({"message": {"thinking": "Hä?"}}, {"message": {"content": "Größe"}}, END)
    pieces = [bytes([byte]) for byte in body]
    async with raw(*pieces) as server:
        parts = await parts_of(connect(server))
    assert [part.text for part in parts if isinstance(part, ThinkingChunk | TextChunk)] == ["Hä?", "Größe"]


@pytest.mark.parametrize("counts", [{}, {"prompt_eval_count": 10, "prompt_eval_cached_count": 40, "eval_count": 1}])
async def test_token_counts_may_be_missing_and_are_never_negative(connect, raw, counts):
    async with raw(lines({**END, **counts})) as server:
        found = [part for part in await parts_of(connect(server)) if isinstance(part, Counted)]
    assert found == ([Counted(Tokens(0, 1, 10))] if counts else [])


async def test_another_name_of_the_model_is_told(connect, raw):
    async with raw(lines({**END, "model": "qwen3:8b"})) as server:
        assert (await assembled(connect(server))).answered_by == "qwen3:8b"


@pytest.mark.parametrize("reason", ["load", "unload"])
async def test_an_answer_that_only_says_that_the_model_was_loaded_is_no_reply(connect, raw, reason):
    async with raw(lines({**END, "done_reason": reason})) as server:
        _, error = await broken_off(connect(server))
    assert error.failure is Failure.CUT


BROKEN = {
    "an error": (lines({"error": "an error was encountered while running the model: EOF"}), Failure.CUT, "running the"),
    "an error that is an object": (lines({"error": {"message": "out of luck"}}), Failure.CUT, "out of luck"),
    "no JSON": (b"nonsense\n", Failure.CUT, "malformed data"),
    "other JSON": (lines({"status": "ok"}), Failure.CUT, "other JSON"),
    "an end": (b"", Failure.CUT, "ended in the middle"),
    "a line without an end": (b"x" * (EVENT_BYTES + 1), Failure.TOO_LARGE, "4 MiB"),
}


@pytest.mark.parametrize("kind", BROKEN)
async def test_a_stream_that_breaks_keeps_what_came_before(connect, raw, kind):
    data, failure, words = BROKEN[kind]
    async with raw(lines({"message": {"content": "Once"}}), data) as server:
        got, error = await broken_off(connect(server))
    assert TextChunk("Once") in got
    assert error.failure is failure
    assert words in error.sentence


async def test_nothing_behind_the_last_line_is_read(connect, raw):
    async with raw(lines(END, {"error": "late"})) as server:
        assert (await parts_of(connect(server)))[-1] == Stopped("end_turn")
