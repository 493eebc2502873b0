"""Extensions that are asked first: chains, rewrites, and what a silent one costs."""

import asyncio

import pytest

from tests.exthost.conftest import ABOUT, tell
from zotd.core.life import ExtensionState
from zotd.exthost.guards import TIMEOUTS, GuardedCall, GuardRemark
from zotd.exthost.host import ExtensionTimeouts
from zotd.wire import ext

GUARD = """
hello()
say({{"type": "subscribe", "intercept": ["tool_call", "turn_start", "assistant_message", "before_agent_start"]}})
say({{"type": "ready"}})
def ask(frame):
    event = frame["event"]
    say({{"type": "event_intercept_response", "id": frame["id"], **decide(frame)}})
{decide}
serve(ask)
"""

IMPATIENT = ExtensionTimeouts(intercept_s=0.1)


@pytest.fixture
def guard(workshop):
    """Installs one; `body` is that of a function from the frame to the answer's fields."""

    def guard(name: str, body: str, **fields: object) -> None:
        workshop.script(name, GUARD.format(decide=f"def decide(frame):\n    {body}"), **fields)

    return guard


async def ask(host, **args: object):
    return await host.guards.tool_call(ABOUT, GuardedCall("c_1", "bash"), args)


# --- answers --------------------------------------------------------------------------------------------------


async def test_only_guards_that_subscribed_are_asked(workshop):
    workshop.acting("good")
    async with workshop.host() as host:
        verdict = await ask(host, command="ls")
        assert (verdict.value, verdict.is_blocked, verdict.notes) == ({"command": "ls"}, False, [])
        assert host.guards.of("tool_call") == []


async def test_rewrites_chain_in_load_order(workshop, guard):
    rewrite = "return {{'modified_args': {{**frame['tool_args'], 'seen': frame['tool_args'].get('seen', '') + '{}'}}}}"
    for name in ("b", "c", "a"):
        guard(name, rewrite.format(name))
    async with workshop.host() as host:
        assert host.guards.of("tool_call") == ["a", "b", "c"]
        verdict = await ask(host, command="ls")
    assert verdict.value == {"command": "ls", "seen": "abc"}


async def test_the_first_block_wins_and_later_ones_are_not_asked(workshop, guard):
    guard("a", "return {}")
    guard("b", "return {'block': True, 'reason': 'no rm here', 'modified_args': {'command': 'evil'}}")
    guard("c", "say({'type': 'notify', 'message': 'asked'}); return {'block': True}")
    async with workshop.host() as host:
        verdict = await ask(host, command="rm")
        assert (verdict.is_blocked, verdict.by, verdict.reason) == (True, "b", "no rm here")
        assert verdict.value == {"command": "rm"}
    assert workshop.heard.wishes == []


async def test_a_block_without_a_reason_has_one(workshop, guard):
    guard("a", "return {'block': True}")
    async with workshop.host() as host:
        assert (await ask(host)).reason == "refused by the extension a"


@pytest.mark.parametrize("answer", ["{'modified_args': 'rm'}", "{'modified_args': [1]}", "{'modified_args': None}"])
async def test_arguments_that_are_no_object_are_ignored(workshop, guard, answer):
    guard("a", f"return {answer}")
    async with workshop.host() as host:
        assert (await ask(host, command="ls")).value == {"command": "ls"}


async def test_a_guard_is_told_what_it_is_about(workshop, guard):
    guard("a", "return {'block': True, 'reason': json.dumps({k: v for k, v in sorted(frame.items()) if k != 'id'})}")
    async with workshop.host() as host:
        call = await ask(host, command="ls")
        step = await host.guards.turn_start(ABOUT, 3)
        text = await host.guards.assistant_message(ABOUT, "hello")
    assert call.reason == (
        '{"event": "tool_call", "session_id": "s_1", "tool_args": {"command": "ls"}, "tool_id": "c_1", '
        '"tool_name": "bash", "type": "event_intercept"}'
    )
    assert step.reason == '{"event": "turn_start", "session_id": "s_1", "step": 3, "type": "event_intercept"}'
    assert (
        text.reason == '{"event": "assistant_message", "session_id": "s_1", "text": "hello", "type": "event_intercept"}'
    )


async def test_a_message_can_be_rewritten(workshop, guard):
    guard("a", "return {'replace_text': frame['text'].upper()}")
    guard("b", "return {'replace_text': frame['text'] + '!'}")
    guard("c", "return {'replace_text': ''}")
    async with workshop.host() as host:
        assert (await host.guards.assistant_message(ABOUT, "hello")).value == "HELLO!"


async def test_a_system_prompt_can_be_replaced_but_not_blocked_or_made_huge(workshop, guard):
    guard("a", "return {'system_prompt': frame['system_prompt'] + ' Be brief.'}")
    guard("b", "return {'block': True}")
    guard("c", "return {'system_prompt': 'x' * (1024 * 1024 + 1)}")
    async with workshop.host() as host:
        verdict = await host.guards.before_agent_start(ABOUT, "You are zot.")
        assert (verdict.value, verdict.is_blocked) == ("You are zot. Be brief.", False)
    guard("d", "return {'system_prompt': ''}")
    async with workshop.host() as host:
        assert (await host.guards.before_agent_start(ABOUT, "You are zot.")).value == ""


# --- silence --------------------------------------------------------------------------------------------------


async def test_a_silent_guard_is_asked_three_times_and_then_skipped(workshop, guard):
    workshop.acting("deaf", "deaf guard", "deaf")
    guard("z", "return {'modified_args': {'command': 'safe'}}")
    async with workshop.host(limits=IMPATIENT) as host:
        said, about = "deaf did not answer within 0.1 s", " (asked about tool_call)"
        for _ in range(TIMEOUTS - 1):
            verdict = await ask(host, command="ls")
            assert (verdict.value, verdict.notes[:1]) == (
                {"command": "safe"},
                [GuardRemark("deaf", "tool_call", said + about)],
            )
        assert all(one.is_responding for one in host.status())
        last = await ask(host, command="ls")
        assert (
            last.notes[0].text
            == f"{said}; it is not responding, and is not asked again until it answers or is restarted{about}"
        )
        assert [note.extension for note in (await ask(host, command="ls")).notes] == ["z"]
        assert [one.is_responding for one in host.status()] == [False, True]
        assert ("deaf", "does not respond to requests") in host.doctor()


async def test_a_guard_that_answers_after_all_is_asked_again(workshop):
    source = """
hello()
say({"type": "subscribe", "events": ["turn_end"], "intercept": ["tool_call"]})
say({"type": "ready"})
held = []
for frame in frames():
    if frame["type"] == "event":
        answer(held[0])
        say({"type": "notify", "message": "late"})
        serve()
    held.append({**frame, "type": "event_intercept"})
"""
    workshop.script("slow", source)
    async with workshop.host(limits=IMPATIENT) as host:
        for _ in range(TIMEOUTS):
            await ask(host)
        assert not host.status()[0].is_responding
        tell(host, ext.Event(event="turn_end"))
        await workshop.heard.until(lambda: workshop.heard.wishes)
        assert host.status()[0].is_responding
        assert (await ask(host)).notes == []


async def test_a_guard_that_is_restarted_is_asked_again(workshop, guard):
    workshop.acting("deaf", "deaf guard", "deaf")
    async with workshop.host(limits=IMPATIENT) as host:
        for _ in range(TIMEOUTS):
            await ask(host)
        guard("deaf", "return {'block': True}")
        assert await host.reload("deaf") is None
        assert (await ask(host)).is_blocked


@pytest.mark.parametrize("behaviour", ["deaf guard", "guard that dies"])
async def test_a_guard_that_fails_closed_refuses(workshop, behaviour):
    workshop.acting("strict", behaviour, "strict", on_failure={"tool_call": "closed"})
    async with workshop.host(limits=IMPATIENT) as host:
        for _ in range(TIMEOUTS + 2):
            verdict = await ask(host, command="ls")
            assert verdict.is_blocked
            assert verdict.by == "strict"
            assert verdict.reason.startswith(("refused because a guard did not answer: strict ", "the guard strict"))
        assert not (await host.guards.turn_start(ABOUT, 1)).is_blocked


async def test_a_missing_guard_that_fails_closed_refuses_with_the_reason(workshop):
    workshop.extension("strict", ["sh", "-c", "exit 4"], on_failure={"tool_call": "closed"})
    workshop.acting("late", "silent", on_failure={"turn_start": "closed"})
    async with workshop.host(wait=False, limits=IMPATIENT) as host:
        await workshop.heard.until(
            lambda: any(name == "strict" and reason for name, _, reason in workshop.heard.states)
        )
        assert (await ask(host)).reason == "refused because a guard did not answer: strict exited with code 4"
        verdict = await host.guards.turn_start(ABOUT, 1)
        assert verdict.reason == "refused because a guard did not answer: late is starting"


async def test_an_open_guard_that_is_not_there_costs_nothing(workshop):
    workshop.acting("late", "silent", on_failure={"tool_call": "open"})
    async with workshop.host(wait=False) as host:
        verdict = await ask(host)
        assert (verdict.is_blocked, verdict.notes) == (False, [])


async def test_a_guard_that_dies_while_it_is_asked_costs_no_wait(workshop):
    workshop.acting("fragile", "guard that dies", "fragile")
    async with workshop.host() as host:
        async with asyncio.timeout(4.5):  # an interception may take 5 s
            verdict = await ask(host)
        assert verdict.notes == [
            GuardRemark("fragile", "tool_call", "fragile exited with code 9 (asked about tool_call)")
        ]
        assert host.status()[0].state is not ExtensionState.READY


async def test_a_frame_over_4_mib_is_like_no_answer(workshop, guard):
    guard("a", "return {'block': True}")
    async with workshop.host() as host:
        verdict = await ask(host, text="x" * 5_000_000)
        assert (verdict.is_blocked, verdict.notes[0].text) == (
            False,
            "a cannot be sent more than 4 MiB at once (asked about tool_call)",
        )


async def test_a_cancelled_question_is_forgotten(workshop):
    workshop.acting("deaf", "deaf guard", "deaf")
    async with workshop.host() as host:
        async with asyncio.TaskGroup() as group:
            question = group.create_task(ask(host))
            await asyncio.sleep(0)  # it is asked
            question.cancel()
        assert question.cancelled()
        assert all(one.is_responding for one in host.status())
