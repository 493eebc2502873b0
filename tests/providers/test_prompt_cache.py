"""Break points in requests of the Messages API, as a vendor's cache finds them."""

import pytest

from tests.providers.conftest import asking, assembled, parts_of, user
from zotd.core.retry import Failure, ModelError
from zotd.testing import script
from zotd.testing.model_server import ModelServer
from zotd.testing.prompt_cache import ManualClock, PromptCache, blocks_of
from zotd.testing.script import Answer, Refusal
from zotd.wire import content
from zotd.wire.content import Message, Thinking, Tokens, ToolCall, ToolResult

LONG = "walrus " * 2_000
"""3,500 tokens, as the cache counts them."""

CALLS = 30
"""More than a cache looks back."""


def ttls(received):
    return [block.ttl for block in blocks_of(received.body) if block.ttl]


def step(number, calls):
    """A reply with that many calls, and their results."""
    made = [ToolCall(f"c_{number}_{call}", "read", {}) for call in range(calls)]
    results = [Message("tool", [ToolResult(one.id, False, [content.Text("x" * 50)])], "") for one in made]
    return [Message("assistant", [Thinking("hm", "sig"), *made], ""), *results]


async def used(model, *messages, **fields):
    return (await assembled(model, asking(*messages, **fields))).tokens


async def test_what_the_request_before_had_is_found_behind_a_step_of_many_calls(connect):
    async with ModelServer([script.text("ok")] * 4, cache=PromptCache(ManualClock(0.0))) as server:
        history = [user(LONG)]
        before = await used(connect(server, "anthropic"), *history)
        for number in range(3):
            history += step(number, CALLS)
            now = await used(connect(server, "anthropic"), *history)  # a run of its own: nothing is remembered
            assert now.cache_read == before.cache_read + before.cache_write
            before = now


async def test_inputs_that_joined_a_cut_reply_and_a_rewind_are_found_too(connect):
    async with ModelServer([script.text("ok")] * 4, cache=PromptCache(ManualClock(0.0))) as server:
        model = connect(server, "anthropic")
        first = [user(LONG), *step(0, 3)]
        was = await used(model, *first)
        joined = [*first, *step(1, CALLS), *(user(f"and {number}") for number in range(CALLS))]
        now = await used(model, *joined)
        assert now.cache_read == was.cache_write
        cut = [*joined, Message("assistant", [content.Text("Well")], ""), user("go on")]
        assert (await used(model, *cut)).cache_read == now.cache_read + now.cache_write
        rewound = [*first, Message("assistant", [content.Text("Other.")], ""), user("differently")]
        assert (await used(model, *rewound)).cache_read == was.cache_write


@pytest.mark.parametrize(("life", "expected"), [("5m", ["5m"] * 4), ("1h", ["1h"] * 4), ("off", [])])
async def test_all_break_points_of_a_request_are_of_one_kind(connect, life, expected):
    async with ModelServer([script.text("ok")]) as server:
        await parts_of(connect(server, "anthropic"), asking(user("a"), *step(0, 1), cache_life=life))
    assert ttls(server.requests[0]) == expected


async def test_an_hour_that_is_wanted_later_marks_tools_and_system_prompt_too(connect):
    cache = PromptCache(ManualClock(0.0))
    async with ModelServer([script.text("ok")] * 2, cache=cache) as server:
        model = connect(server, "anthropic")
        assert (await used(model, user(LONG))).cache_write_hour == 0
        assert (await used(model, user(LONG * 2), cache_life="1h")).cache_write_hour > 0
    assert ttls(server.requests[1]) == ["1h"] * 3


async def test_what_was_written_for_an_hour_is_counted(connect):
    async with ModelServer([script.text("ok", usage=Tokens(5, 6, 7, 80, cache_write_hour=60))]) as server:
        found = await assembled(connect(server, "anthropic"))
    assert found.tokens == Tokens(5, 6, 7, 80, cache_write_hour=60)


HOUR = "tools.0.custom.cache_control.ephemeral.ttl: Extra inputs are not permitted"
ANY = "system.0.cache_control: Extra inputs are not permitted"


@pytest.mark.parametrize(
    ("refusals", "expected"),
    [([HOUR], ["1h", "5m"]), ([ANY, ANY], ["1h", "5m", ""]), ([HOUR, ANY], ["1h", "5m", ""])],
)
async def test_a_server_that_refuses_a_life_is_asked_for_a_shorter_one_from_then_on(connect, refusals, expected):
    answers: list[Answer] = [*(Refusal(400, words) for words in refusals), script.text("ok"), script.text("ok")]
    async with ModelServer(answers) as server:
        for _ in range(2):
            await parts_of(connect(server, "anthropic"), asking(cache_life="1h"))
    kinds = ["".join({*ttls(one)}) for one in server.requests]
    assert kinds == [*expected, expected[-1]]


async def test_another_model_of_the_server_is_asked_for_an_hour_again(connect):
    async with ModelServer([Refusal(400, HOUR), script.text("ok"), script.text("ok")]) as server:
        for model in ("old", "new"):
            await parts_of(connect(server, "anthropic", model), asking(cache_life="1h"))
    assert [ttls(one)[0] for one in server.requests] == ["1h", "5m", "1h"]


@pytest.mark.parametrize("words", ["max_tokens: too many", "messages.0: unexpected `tool_use_id`"])
async def test_other_refusals_are_not_tried_again(connect, words):
    async with ModelServer([Refusal(400, words), script.text("ok")]) as server:
        with pytest.raises(ModelError) as raised:
            await parts_of(connect(server, "anthropic"), asking(cache_life="1h"))
    assert raised.value.failure is Failure.REFUSED
    assert len(server.requests) == 1
