"""Budgets of the day and of a session, in a real daemon whose model says what it took."""

import asyncio
import signal
from contextlib import AsyncExitStack

import pytest

from tests.e2e.conftest import House
from zotd.testing.live_daemon import DaemonProcess, serving
from zotd.testing.script import CallPart, Cut, Gate, Hang, Refusal, ScriptedReply, TextPart, text
from zotd.wire.content import Tokens

QUARTER = Tokens(input=100_000)
"""What a request takes that costs a quarter of a dollar, with the model below."""

MODEL = "gpt-4o"
"""2.50 USD for a million tokens that are read."""

UNPRICED = "walrus-1"
"""Nobody knows what it costs."""

UNKNOWN_USD = 0.4
"""What a request of unknown cost counts with at least, in these tests."""


@pytest.fixture
async def budgeted(tmp_path):
    """`await budgeted(DAY_USD=1)`: a daemon in this loop with this in its configuration; again: a later one."""
    async with AsyncExitStack() as stack:
        places = await stack.enter_async_context(AsyncExitStack())

        async def budgeted(**budget):
            await places.aclose()
            limits = {"UNKNOWN_USD": UNKNOWN_USD, **budget}
            env = {f"ZOT_BUDGET_{name}": str(limit) for name, limit in limits.items()}
            env["ZOT_COMPACT_EARLY_AT"] = "0"  # replies here are so long that it would take answers out of the script
            return House(places, await places.enter_async_context(serving(tmp_path, env)))

        yield budgeted


def quarter(*words):
    return text(*words, usage=QUARTER)


async def begin(house, server, **options):
    return await house.create("openai", server, **({"model": MODEL} | options))


async def refused(talk, command, **fields):
    """The code and the sentence."""
    answer = await talk.client.answer(command, session=talk.id, **fields)
    assert not answer["success"]
    return answer["code"], answer["error"]


async def usage(house):
    """The one row of the report, and the budgets."""
    report = await (await house.connect()).ask("usage.report")
    (row,) = report["rows"]
    return row, report.get("budgets", [])


def failure(events):
    return [event["message"] for event in events if event["type"] == "error"]


# --- a budget that is used up ---------------------------------------------------------------------------------


async def test_the_prompt_after_the_last_cent_of_the_day_is_refused(budgeted, model):
    house, server = await budgeted(DAY_USD=0.01), await model(quarter("one"))
    talk = await begin(house, server)
    assert failure(await talk.run()) == []
    code, sentence = await refused(talk, "prompt", message="more")
    assert code == "budget_exceeded"
    assert sentence == (
        "the budget of today is used up: $0.25 of $0.01; "
        "raise budget.day_usd in config.toml and run zotctl reload, or continue tomorrow"
    )
    other = await begin(house, server)
    assert (await refused(other, "prompt", message="more"))[0] == "budget_exceeded"
    assert (await refused(other, "compact"))[0] == "budget_exceeded"
    assert (await talk.state(), len(server.requests)) == ("idle", 1)


async def test_the_prompt_after_the_last_cent_of_a_session_is_refused_until_it_gets_more(budgeted, model):
    house, server = await budgeted(SESSION_USD=100), await model(quarter("one"), quarter("two"))
    talk = await begin(house, server, budget_usd=0.2)
    await talk.run()
    code, sentence = await refused(talk, "prompt", message="more")
    assert (code, "raise it with --budget-usd" in sentence) == ("budget_exceeded", True)
    await talk.ask("session.configure", budget_usd=0.5)
    assert failure(await talk.run()) == []


async def test_a_run_ends_before_the_request_that_nothing_is_left_for_and_what_waits_is_held(budgeted, model):
    house = await budgeted(SESSION_TOKENS=100_000)
    go = asyncio.Event()
    server = await model(ScriptedReply([Gate(go), CallPart("read", {"path": "nowhere"})], usage=QUARTER))
    talk = await begin(house, server)
    await talk.ask("prompt", message="go")
    await server.received(1)
    await talk.ask("prompt", message="later")
    go.set()
    events = await talk.until("done")
    (sentence,) = failure(events)
    assert sentence == (
        "the budget of this session is used up: 100,000 of 100,000 tokens; "
        "raise it with --budget-tokens, or begin another session"
    )
    assert [event["stop"] for event in events if event["type"] == "turn_end"] == ["tool_use", "error"]
    (held,) = [one for one in await talk.until("queue_changed") if one["type"] == "queue_changed"]
    assert (held["held"], [item["text"] for item in held["items"]]) == (True, ["later"])
    assert len(server.requests) == 1


async def test_no_retry_is_sent_when_the_first_try_may_have_used_up_the_budget(budgeted):
    house, asked = await budgeted(DAY_USD=UNKNOWN_USD), []

    async def serve(reader, writer):
        asked.append(await reader.readline())
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as rude:
        port = rude.sockets[0].getsockname()[1]
        talk = await begin(house, None, base_url=f"http://127.0.0.1:{port}")
        assert "the budget of today is used up: $0.40 of $0.40" in failure(await talk.run())[0]
    assert len(asked) == 1


async def test_no_summary_is_asked_for_when_nothing_is_left(budgeted, model):
    full = Tokens(input=120_000, output=10)  # more than 85 % of the model's window
    house, server = (
        await budgeted(SESSION_TOKENS=120_010),
        await model(ScriptedReply([TextPart(["hm"]), CallPart("ls")], usage=full)),
    )
    talk = await begin(house, server)
    (sentence,) = failure(await talk.run())
    assert "could not be summarised: the budget of this session is used up" in sentence
    assert len(server.requests) == 1


async def test_a_model_without_a_known_price_is_never_free(budgeted, model):
    house, server = await budgeted(DAY_USD=UNKNOWN_USD), await model(text("cheap", usage=Tokens(input=10)))
    talk = await begin(house, server, model=UNPRICED)
    await talk.run()
    assert (await refused(talk, "prompt", message="more"))[0] == "budget_exceeded"
    row, _ = await usage(house)
    assert (row["cost_usd"], row["input"], row["unknown"], row["estimated_usd"]) == (0, 10, 0, UNKNOWN_USD)


async def test_sessions_side_by_side_cannot_all_spend_the_last_dollar(budgeted, model):
    house, go = await budgeted(DAY_USD=1.0), asyncio.Event()
    server = await model(lambda _: ScriptedReply([Gate(go), TextPart(["ok"])], usage=QUARTER))
    talks = [await begin(house, server, ephemeral=True) for _ in range(8)]
    for talk in talks[:3]:
        await talk.ask("prompt", message="go")
    await server.received(3)  # 3 times 0.40 USD are set aside
    for talk in talks[3:]:
        code, sentence = await refused(talk, "prompt", message="go")
        assert (code, "are set aside for requests under way" in sentence) == ("budget_exceeded", True)
    go.set()
    for talk in talks[:3]:
        await talk.until("done")
    assert failure(await talks[3].run()) == []  # they took 0.75 USD
    assert len(server.requests) == 4


# --- every attempt counts once --------------------------------------------------------------------------------


async def test_every_attempt_has_a_usage_row_also_one_that_failed_or_was_aborted(budgeted, model):
    house = await budgeted(DAY_USD=100)
    cut = ScriptedReply([TextPart(["on"]), Cut()])
    server = await model(Refusal(500), quarter("one"), cut, Refusal(400), ScriptedReply([Hang()]), quarter("Summary."))
    talk = await begin(house, server)
    for patience_s in (30, 0, 0):  # an answer after an error, a lost connection, a refusal
        await talk.run(patience_s=patience_s)
    await talk.ask("prompt", message="go")
    await server.received(5)
    await talk.ask("abort")
    await talk.until("done")
    await talk.ask("compact")
    await talk.until("done")
    row, (day,) = await usage(house)
    assert (row["attempts"], row["unknown"], row["cost_usd"]) == (6, 2, 0.5)
    assert row["estimated_usd"] == 2 * UNKNOWN_USD
    assert day["spent_usd"] == pytest.approx(0.5 + 2 * UNKNOWN_USD)
    assert (day["scope"], day["limit_usd"], day["reserved_usd"], day["limit_tokens"]) == ("day", 100, 0, None)


async def test_a_summary_in_the_middle_of_a_run_has_a_row_also_when_it_fails(budgeted, model):
    house, full = await budgeted(DAY_USD=100), Tokens(input=120_000)
    long = ScriptedReply([CallPart("read", {"path": "nowhere"})], usage=full)
    server = await model(long, quarter("Summary."), long, Refusal(400))
    talk = await begin(house, server)
    assert "could not be summarised" in failure(await talk.run())[0]
    row, _ = await usage(house)
    assert (row["attempts"], row["unknown"], row["input"]) == (4, 0, 340_000)


async def test_a_long_prompt_counts_although_its_request_was_aborted(budgeted, model):
    house, server = await budgeted(DAY_USD=100, UNKNOWN_USD=0), await model(ScriptedReply([Hang()]))
    talk = await begin(house, server)
    await talk.ask("prompt", message="x" * 300_000)
    await server.received(1)
    await talk.ask("abort")
    await talk.until("done")
    row, _ = await usage(house)
    assert 0.25 < row["estimated_usd"] < 0.35


async def test_an_unreachable_vendor_costs_nothing(budgeted):
    house = await budgeted(DAY_USD=0.01)
    talk = await begin(house, None, base_url="http://127.0.0.1:9")
    await talk.ask("prompt", message="go")
    await talk.until("retry")
    await talk.ask("abort")
    await talk.until("done")
    row, _ = await usage(house)
    assert (row["attempts"], row["unknown"], row["estimated_usd"]) == (1, 0, 0)


# --- restarts -------------------------------------------------------------------------------------------------


async def test_costs_of_today_still_count_after_a_restart(budgeted, model):
    server = await model(quarter("one"), quarter("two"))
    first = await begin(await budgeted(DAY_USD=0.3, SESSION_USD=0.2), server)
    await first.run()
    house = await budgeted(DAY_USD=0.3, SESSION_USD=0.2)
    again = await house.follow(first.id)
    await again.ask("session.configure", secrets={"api_key": "sk-scripted-key"})
    assert (await refused(again, "prompt", message="more"))[0] == "budget_exceeded"
    await (await begin(house, server)).run()
    house = await budgeted(DAY_USD=0.3)
    assert (await refused(await begin(house, server), "prompt", message="more"))[0] == "budget_exceeded"


async def test_a_request_that_a_crash_cut_counts_with_its_estimate(tmp_path, model):
    server = await model(ScriptedReply([Hang()]))
    limits = {"ZOT_BUDGET_DAY_USD": "0.4", "ZOT_BUDGET_UNKNOWN_USD": str(UNKNOWN_USD)}
    async with AsyncExitStack() as stack:
        daemon = stack.enter_context(DaemonProcess(tmp_path, limits))
        house = House(stack, daemon.place, daemon)
        await (await begin(house, server)).ask("prompt", message="go")
        await server.received(1)
        house.restart(signal.SIGKILL)
        talk = await begin(house, server)
        code, sentence = await refused(talk, "prompt", message="more")
        assert (code, "$0.40 of $0.40" in sentence) == ("budget_exceeded", True)


# --- what people see ------------------------------------------------------------------------------------------


async def test_status_warns_from_four_fifths_on(budgeted, model):
    house, server = await budgeted(DAY_USD=0.3), await model(quarter("one"))
    client = await house.connect()
    assert (await client.ask("daemon.status"))["warnings"] == []
    await (await begin(house, server)).run()
    warnings = (await client.ask("daemon.status"))["warnings"]
    assert warnings == ["the budget of today is nearly used up: $0.25 of $0.30"]


@pytest.mark.parametrize("limits", [{"budget_usd": 0}, {"budget_usd": -1.5}, {"budget_tokens": 0}])
async def test_a_budget_of_nothing_is_refused(house, model, limits):
    talk = await begin(house, await model())
    code, sentence = await refused(talk, "session.configure", **limits)
    assert (code, "must be above 0" in sentence) == ("bad_request", True)
