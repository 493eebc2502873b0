"""What a search by a vendor's model costs, in a real daemon: in the report of usage and in budgets."""

import asyncio

import pytest
from aiohttp import web

from tests.e2e.conftest import only
from zotd.testing.http_site import listening
from zotd.testing.script import CallPart, calls, text

SEARCH = CallPart("web_search", {"query": "foxes"})

READ = 100_000
"""Tokens that a search reads here."""

CLAUDE = {
    "content": [{"type": "web_search_tool_result", "content": [{"url": "https://example.org/a", "title": "Foxes"}]}],
    "usage": {"input_tokens": READ, "output_tokens": 0, "server_tool_use": {"web_search_requests": 1}},
}

GPT = {
    "output": [
        {"type": "web_search_call", "action": {"type": "search", "query": "foxes"}},
        {"type": "web_search_call", "action": {"type": "open_page", "url": "https://example.org/a"}},
        {
            "type": "message",
            "content": [
                {
                    "type": "output_text",
                    "text": "Foxes.",
                    "annotations": [{"type": "url_citation", "url": "https://example.org/a", "end_index": 6}],
                }
            ],
        },
    ],
    "usage": {"input_tokens": READ, "output_tokens": 0, "input_tokens_details": {"cached_tokens": 0}},
}

VENDORS = {"anthropic": ("claude-sonnet-4-5", CLAUDE, 0.30 + 0.01), "openai": ("gpt-4o", GPT, 0.25 + 0.01)}
"""The model that searches, what its vendor answers, and what that costs: 100,000 tokens and one search."""


@pytest.fixture
async def searched(house):
    """`await searched(name, handler, **options)`: a talk of a session that searches with this vendor, whose API is the handler."""
    runners = []

    async def searched(server, name, handler, *, searches_with="", day_usd=None, **options):
        app = web.Application()
        app.router.add_post("/v1", handler)
        runners.append(web.AppRunner(app, handler_cancellation=True))
        url = f"{await listening(runners[-1])}/v1"
        model = searches_with or VENDORS[name][0]
        lines = ["[web]", f'search = "{name}"', f'search_url = "{url}"', f'search_model = "{model}"']
        lines += [] if day_usd is None else ["[budget]", f"day_usd = {day_usd}"]
        (house.place.home / "config.toml").write_text("\n".join([*lines, ""]))
        await (await house.connect(role="admin")).ask("daemon.reload")
        env = {"PATH": house.place.env["PATH"], "HOME": house.place.env["HOME"]}
        keys = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}
        return await house.create("openai", server, model="local-1", env=env | keys, **options)

    yield searched
    for runner in runners:
        await runner.cleanup()


def answering(answer):
    async def handler(_request):
        return web.json_response(answer)

    return handler


async def cost(house, key):
    """The row of the report about this model, and the budgets."""
    report = await (await house.connect()).ask("usage.report")
    (row,) = (one for one in report["rows"] if one["key"] == key)
    return row, report.get("budgets", [])


def results(events):
    return [one["content"][0]["text"] for one in only(events, "tool_result")]


@pytest.mark.parametrize("name", VENDORS)
async def test_a_search_costs_its_tokens_and_the_price_of_a_search(house, model, searched, name):
    searcher, answer, usd = VENDORS[name]
    server = await model(calls(SEARCH), text("done"))
    talk = await searched(server, name, answering(answer), day_usd=100, budget_usd=100)
    (found,) = results(await talk.run())
    assert "https://example.org/a" in found
    row, budgets = await cost(house, f"{name}/{searcher}")
    assert (row["input"], row["attempts"], row["unknown"]) == (READ, 1, 0)
    assert row["cost_usd"] == pytest.approx(usd)
    assert {one["scope"] for one in budgets} == {"day", "session"}
    assert all(one["spent_usd"] >= usd for one in budgets)


@pytest.mark.parametrize("limit", [{"day_usd": 0.2}, {"budget_usd": 0.2}])
async def test_a_search_is_refused_in_one_sentence_when_a_budget_is_used_up(model, searched, limit):
    asked = []

    async def handler(request):
        asked.append(request)
        return web.json_response(CLAUDE)

    server = await model(calls(SEARCH, SEARCH))
    talk = await searched(server, "anthropic", handler, **limit)
    found, refused = sorted(results(await talk.run()), key=len, reverse=True)
    assert "https://example.org/a" in found
    whose = "today" if "day_usd" in limit else "this session"
    assert refused.startswith(f"the budget of {whose} is used up: $0.")
    assert "\n" not in refused
    assert len(asked) == 1


async def test_a_model_of_unknown_price_is_counted_with_an_estimate(house, model, searched):
    server = await model(calls(SEARCH), text("done"))
    talk = await searched(server, "anthropic", answering(CLAUDE), searches_with="walrus-1")
    await talk.run()
    row, _ = await cost(house, "anthropic/walrus-1")
    assert row["cost_usd"] == pytest.approx(0.01)
    assert row["estimated_usd"] >= 1.0


async def test_a_search_that_breaks_off_is_unknown_and_counts_with_its_estimate(house, model, searched):
    async def handler(request):
        request.transport.close()
        return web.Response()

    server = await model(calls(SEARCH), text("done"))
    talk = await searched(server, "openai", handler, day_usd=100)
    (broken,) = results(await talk.run())
    assert "openai cannot be reached" in broken
    row, _ = await cost(house, "openai/gpt-4o")
    assert (row["unknown"], row["cost_usd"]) == (1, 0)
    assert row["estimated_usd"] > 0.01


async def test_a_search_that_the_vendor_refuses_costs_nothing(house, model, searched):
    async def handler(_request):
        return web.Response(status=401)

    server = await model(calls(SEARCH), text("done"))
    talk = await searched(server, "anthropic", handler)
    (refused,) = results(await talk.run())
    assert "refuses the key in ANTHROPIC_API_KEY" in refused
    row, _ = await cost(house, "anthropic/claude-sonnet-4-5")
    assert (row["attempts"], row["unknown"], row["cost_usd"], row["estimated_usd"]) == (1, 0, 0, 0)


async def test_a_search_that_is_aborted_counts_with_its_estimate(house, model, searched):
    begun = asyncio.Event()

    async def handler(_request):
        begun.set()
        await asyncio.Event().wait()

    server = await model(calls(SEARCH), text("done"))
    talk = await searched(server, "anthropic", handler)
    talk.send("prompt", message="go")
    await begun.wait()
    talk.send("abort")
    await talk.until("done")
    row, _ = await cost(house, "anthropic/claude-sonnet-4-5")
    assert (row["attempts"], row["unknown"]) == (1, 1)
    assert row["estimated_usd"] > 0.01
