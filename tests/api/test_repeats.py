"""Repeated requests: what is remembered, for how long, and what is never evicted."""

import asyncio

import pytest

from zotd.api import repeats
from zotd.api.repeats import Repeats
from zotd.wire import api
from zotd.wire.errors import CommandError


def renamed(request_id, name="tests"):
    return api.Rename(session="s_1", request_id=request_id, name=name)


async def answered(seen, params, answer):
    future = seen.begin("session.rename", params)
    future.set_result(answer)
    await asyncio.sleep(0)  # the future calls its callbacks in the next iteration of the loop
    return future


async def test_a_repeated_request_gets_the_first_response_and_another_payload_is_refused():
    seen = Repeats()
    await answered(seen, renamed("1"), api.Pong(pong=True))
    first = seen.seen("session.rename", renamed("1"))
    assert first is not None
    assert first.answer.result() == api.Pong(pong=True)
    assert seen.seen("session.rename", renamed("2")) is None
    assert seen.seen("prompt", api.Prompt(session="s_1", request_id="1", message="go")) is None
    with pytest.raises(CommandError, match="another request"):
        seen.seen("session.rename", renamed("1", "others"))


async def test_a_failed_request_may_be_repeated():
    seen = Repeats()
    answer = seen.begin("session.rename", renamed("1"))
    assert answer is not None
    answer.cancel()
    await asyncio.sleep(0)
    assert seen.seen("session.rename", renamed("1", "others")) is None


async def test_the_oldest_responses_are_evicted_but_no_running_request():
    seen = Repeats()
    seen.begin("session.rename", renamed("under way"))
    for number in range(repeats.MAX_KEPT + 1):
        await answered(seen, renamed(str(number)), None)
    assert seen.seen("session.rename", renamed("under way")) is not None
    assert seen.seen("session.rename", renamed("0")) is None
    assert seen.seen("session.rename", renamed("1")) is not None


async def test_the_size_of_remembered_responses_is_limited():
    seen = Repeats()
    answer = api.CommandResult("display", text="x" * (repeats.MAX_BYTES // 3))
    for number in range(4):
        await answered(seen, renamed(str(number)), answer)
    assert [seen.seen("session.rename", renamed(str(number))) is not None for number in range(4)] == [
        False,
        False,
        True,
        True,
    ]


async def test_the_size_of_request_ids_counts_as_well():
    seen = Repeats()
    for sign in "abcd":
        await answered(seen, renamed(sign * (repeats.MAX_BYTES // 3)), None)
    assert seen.seen("session.rename", renamed("a" * (repeats.MAX_BYTES // 3))) is None
    assert seen.seen("session.rename", renamed("d" * (repeats.MAX_BYTES // 3))) is not None


async def test_secrets_are_not_part_of_the_digest():
    one, other = (api.SessionConfigure(session="s_1", request_id="1", secrets=api.Secrets(key)) for key in ("a", "b"))
    seen = Repeats()
    await answered(seen, one, None)
    assert seen.seen("session.rename", other) is not None
