"""Calls and their deadlines, without a process."""

import asyncio

import pytest

from zotd.exthost.calls import Calls, CallTimeoutError, ExtensionCallError
from zotd.wire import ext


@pytest.fixture
async def calls():
    """Its `sent` are the ids of what was sent, its `given_up` those that nobody waits for any more."""
    log: dict[str, list[str]] = {"sent": [], "given_up": []}
    found = Calls("x", idle=lambda: None, given_up=lambda key, _: log["given_up"].append(key))
    return found, log["sent"], log["given_up"]


async def test_an_earlier_deadline_overtakes_a_later_one(calls):
    calls, sent, given_up = calls

    async with asyncio.TaskGroup() as group:
        slow = group.create_task(calls.call(ext.ToolResult, sent.append, limit_s=1000, session="s_1"))
        await asyncio.sleep(0)  # it is sent
        with pytest.raises(CallTimeoutError, match=r"did not answer within 0\.01 s"):
            await calls.call(ext.EventInterceptResponse, sent.append, limit_s=0.01)
        assert (calls.guard_timeouts, calls.session, len(calls)) == (1, "s_1", 1)
        assert calls.answered(ext.ToolResult(sent[0]))
        assert await slow == ext.ToolResult(sent[0])
    assert given_up == [sent[1]]
    calls.fail_all("was stopped")


async def test_frames_that_were_not_sent_are_not_given_up(calls):
    calls, _, given_up = calls

    def refuse(_):
        raise ExtensionCallError("cannot be sent")

    with pytest.raises(ExtensionCallError, match="cannot be sent"):
        await calls.call(ext.ToolResult, refuse, limit_s=1)
    assert (len(calls), given_up) == (0, [])


async def test_an_answer_and_a_cancellation_may_meet(calls):
    calls, sent, given_up = calls
    async with asyncio.TaskGroup() as group:
        call = group.create_task(calls.call(ext.ToolResult, sent.append, limit_s=None))
        await asyncio.sleep(0)  # it is sent
        call.cancel()
        calls.answered(ext.ToolResult(sent[0]))
    assert call.cancelled()
    assert (len(calls), given_up) == (0, [])


async def test_progress_sets_the_limit_of_a_patient_call_back():
    sent: list[str] = []
    calls = Calls("x", idle=lambda: None, given_up=lambda *_: None, is_patient=True)
    loop = asyncio.get_running_loop()
    seen: list[str] = []

    def report(text):
        seen.append(text)
        if len(seen) < 5:
            loop.call_later(0.1, calls.progress, ext.ToolProgress(sent[0], str(len(seen))))

    loop.call_later(0.1, calls.progress, ext.ToolProgress("x-1", "0"))
    start = loop.time()
    with pytest.raises(CallTimeoutError):
        await calls.call(ext.ToolResult, sent.append, limit_s=0.3, progress=report)
    assert seen == ["0", "1", "2", "3", "4"]
    assert loop.time() - start >= 0.8 - 0.01


async def test_progress_does_not_help_another_call(calls):
    calls, sent, _ = calls
    asyncio.get_running_loop().call_later(0.02, calls.progress, ext.ToolProgress("x-1", "0"))
    seen: list[str] = []
    with pytest.raises(CallTimeoutError):
        await calls.call(ext.ToolResult, sent.append, limit_s=0.05, progress=seen.append)
    assert not calls.answered(ext.ToolResult(sent[0]))
