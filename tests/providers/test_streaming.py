"""Replies in all APIs, through their SDKs, translated to the same parts."""

import asyncio

import pytest

from tests.providers.conftest import DIALECTS, TITLES, asking, assembled, broken_off, parts_of
from zotd.core.reply import CallArgs, CallEnd, CallStart, Counted, RequestAccepted, Stopped, TextChunk
from zotd.core.retry import Failure, ModelError
from zotd.testing import script
from zotd.testing.model_server import ModelServer
from zotd.testing.script import CallPart, Cut, Gate, Hang, Refusal, ScriptedReply, StreamError
from zotd.wire.content import Text, Tokens

pytestmark = pytest.mark.parametrize("vendor", DIALECTS)


async def test_text_arrives_piece_by_piece(connect, vendor):
    async with ModelServer([script.text("Good ", "day")]) as server:
        parts = await parts_of(connect(server, vendor))
    assert parts[0] == RequestAccepted()
    assert [p for p in parts if type(p) is TextChunk] == [TextChunk("Good "), TextChunk("day")]
    assert parts[-1] == Stopped("end_turn")


async def test_tool_calls_arrive_piece_by_piece(connect, vendor):
    async with ModelServer([script.calls(CallPart("read", {"path": "a.txt"}), before="Looking.")]) as server:
        parts = await parts_of(connect(server, vendor))
    call = [p for p in parts if type(p) in {CallStart, CallArgs, CallEnd}]
    pieces = [CallArgs] if vendor == "ollama" else [CallArgs, CallArgs]  # Ollama holds a call back until it is whole
    assert [type(p) for p in call] == [CallStart, *pieces, CallEnd]
    assert len({p.index for p in call}) == 1
    assert parts[-1] == Stopped("tool_use")


async def test_parallel_calls_keep_their_own_arguments(connect, vendor):
    wanted = [CallPart("read", {"path": f"{n}.txt"}) for n in range(4)]
    async with ModelServer([script.calls(*wanted)]) as server:
        reply = await assembled(connect(server, vendor))
    assert [(b.name, b.args) for b in reply.message()] == [(c.name, c.args) for c in wanted]


async def test_a_call_without_arguments_is_whole(connect, vendor):
    async with ModelServer([script.calls(CallPart("list", raw=""))]) as server:
        reply = await assembled(connect(server, vendor))
    assert [b.args for b in reply.message()] == [{}]


async def test_broken_arguments_are_passed_on_as_they_are(connect, vendor):
    async with ModelServer([script.calls(CallPart("read", raw='{"path": nonsense'))]) as server:
        reply = await assembled(connect(server, vendor))
    if vendor == "ollama":  # which reads the model's calls itself, and takes a broken one for text
        assert reply.message() == [Text('{"path": nonsense')]
    else:
        assert len(reply.broken_calls()) == 1


@pytest.mark.parametrize("reason", ["end_turn", "length", "refusal"])
async def test_the_reason_to_stop_is_told_in_our_words(connect, vendor, reason):
    told = "end_turn" if vendor == "ollama" and reason == "refusal" else reason  # it has no refusals
    async with ModelServer([script.text("…", stop=reason)]) as server:
        assert (await parts_of(connect(server, vendor)))[-1] == Stopped(told)


async def test_a_call_that_the_token_limit_cut_never_ends(connect, vendor):
    reply = ScriptedReply(
        [CallPart("read", {"path": "a"}), CallPart("write", {"path": "b", "text": "…"})], stop="length"
    )
    async with ModelServer([reply]) as server:
        got = await assembled(connect(server, vendor))
    assert got.stop == "length"
    assert [b.name for b in got.message()] == ["read"]


async def test_tokens_are_counted_with_those_of_the_cache_apart(connect, vendor):
    usage = Tokens(input=100, output=20, cache_read=50)
    async with ModelServer([script.text("ok", usage=usage)]) as server:
        parts = await parts_of(connect(server, vendor))
    assert [p for p in parts if type(p) is Counted][-1] == Counted(usage)


async def test_thinking_becomes_one_block_before_the_text(connect, vendor):
    reply = ScriptedReply([script.ThinkingPart(["Let ", "me see."]), script.TextPart(["Yes."])])
    async with ModelServer([reply]) as server:
        got = await assembled(connect(server, vendor))
    thinking, text = got.message()
    assert (thinking.text or "".join(thinking.summary)) == "Let me see."
    assert thinking.signature == ("signed" if vendor == "anthropic" else "")
    assert thinking.encrypted == ("signed" if vendor == "responses" else "")
    assert text.text == "Yes."


async def test_a_cut_connection_is_never_a_normal_end(connect, vendor):
    async with ModelServer([ScriptedReply([script.TextPart(["Once upon"]), Cut()])]) as server:
        got, error = await broken_off(connect(server, vendor))
    assert error.failure is Failure.CUT
    assert TextChunk("Once upon") in got
    assert not any(type(p) is Stopped for p in got)


async def test_a_connection_cut_inside_a_call_leaves_the_call_open(connect, vendor):
    async with ModelServer(
        [ScriptedReply([script.TextPart(["So"]), CallPart("write", {"path": "a"}), Cut()])]
    ) as server:
        got, error = await broken_off(connect(server, vendor))
    assert error.failure is Failure.CUT
    assert any(type(p) is CallStart for p in got) == (vendor != "ollama")
    assert not any(type(p) is CallEnd for p in got)


async def test_an_error_in_the_middle_ends_the_reply_with_the_vendors_words(connect, vendor):
    async with ModelServer([ScriptedReply([script.TextPart(["Once"]), StreamError("Overloaded")])]) as server:
        with pytest.raises(ModelError, match="cut off its reply: Overloaded") as raised:
            await parts_of(connect(server, vendor))
        # Ollama's errors have no type, so nothing but their words tells them apart.
        assert raised.value.failure is (Failure.CUT if vendor == "ollama" else Failure.OVERLOADED)


@pytest.mark.parametrize(
    ("refusal", "failure", "words"),
    [
        (Refusal(401, "invalid x-api-key"), Failure.AUTH, "--api-key"),
        (Refusal(403, "not yours"), Failure.AUTH, "not yours"),
        (Refusal(400, "prompt is too long: 200001 tokens > 200000"), Failure.CONTEXT, "compact"),
        (Refusal(400, "too long", kind="context_length_exceeded"), Failure.CONTEXT, "compact"),
        (Refusal(400, "too long", kind="exceed_context_size_error"), Failure.CONTEXT, "compact"),
        (Refusal(413, "Request too large"), Failure.CONTEXT, "compact"),
        (Refusal(400, "temperature: out of range."), Failure.REFUSED, "temperature: out of range;"),
        (Refusal(404, "model: nope"), Failure.NO_MODEL, "check the model's name"),
        (Refusal(429, "slow down"), Failure.RATE_LIMIT, "slow down"),
        (Refusal(429, "pay first", kind="insufficient_quota"), Failure.QUOTA, "pay first"),
        (Refusal(529, "Overloaded"), Failure.OVERLOADED, "overloaded"),
        (Refusal(503, "busy"), Failure.OVERLOADED, "busy"),
        (Refusal(500, "oops"), Failure.SERVER, "oops"),
        (Refusal(307, "elsewhere", headers={"location": "/other"}), Failure.REFUSED, "307"),
    ],
)
async def test_an_error_answer_says_what_failed_and_what_to_do(connect, vendor, refusal, failure, words):
    if vendor == "ollama" and refusal.kind:  # its errors have no type: the words say it
        refusal = Refusal(refusal.status, f"{refusal.message}: {refusal.kind}")
    async with ModelServer([refusal]) as server:
        with pytest.raises(ModelError) as raised:
            await parts_of(connect(server, vendor))
        assert len(server.requests) == 1  # the SDKs do not repeat it, nor follow a redirect
    assert raised.value.failure is failure
    assert words in raised.value.sentence
    assert TITLES[vendor] in raised.value.sentence


async def test_how_long_to_wait_is_taken_from_the_answer(connect, vendor):
    async with ModelServer([Refusal(429, headers={"retry-after": "7"})]) as server:
        with pytest.raises(ModelError) as raised:
            await parts_of(connect(server, vendor))
    assert raised.value.retry_after_s == 7


async def test_a_server_that_is_not_there_is_named(connect, vendor):
    async with ModelServer() as server:
        pass
    with pytest.raises(ModelError, match=server.url) as raised:
        await parts_of(connect(server, vendor))
    assert raised.value.failure is Failure.UNREACHABLE


async def test_received_text_is_shown_before_the_reply_ends(connect, vendor):
    event = asyncio.Event()
    async with ModelServer(
        [ScriptedReply([script.TextPart(["now"]), Gate(event), script.TextPart(["later"])])]
    ) as server:
        seen = []
        async for parts in connect(server, vendor).stream(asking()):
            seen.extend(parts)
            if TextChunk("now") in seen:
                event.set()
    assert seen[-1] == Stopped("end_turn")


@pytest.mark.parametrize("steps", [[Hang()], [script.TextPart(["Once"]), Hang()]])
async def test_a_reply_that_hangs_can_be_cancelled(connect, vendor, steps):
    async with ModelServer([ScriptedReply(steps)]) as server:
        reading = connect(server, vendor)
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(parts_of(reading))
            await server.received(1)
            task.cancel()
    assert task.cancelled()


async def test_a_reply_may_be_left_in_the_middle(connect, vendor):
    async with ModelServer([ScriptedReply([script.TextPart(["Once"]), Hang()]), script.text("again")]) as server:
        model = connect(server, vendor)
        stream = model.stream(asking())
        assert await anext(stream) == [RequestAccepted()]
        await stream.aclose()
        assert TextChunk("again") in await parts_of(model)


async def test_a_chunk_with_many_deltas_is_one_list(connect, vendor):
    async with ModelServer([ScriptedReply([script.TextPart(["tok "] * 500)], joined=True)]) as server:
        lists = [list(parts) async for parts in connect(server, vendor).stream(asking())]
    assert sum(type(p) is TextChunk for parts in lists for p in parts) == 500
    assert len(lists) < 50
