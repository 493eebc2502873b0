"""MCP servers that want as much of the model as they can get, against a real daemon."""

import pytest

from tests.e2e.test_sampling import attempts, opened
from zotd.testing.script import CallPart, calls, text
from zotd.wire.content import Tokens


@pytest.mark.parametrize("tool", ["at_once", "in_a_row"])
async def test_a_call_gets_twenty_answers_of_the_model_and_not_one_more(house, model, results, tool):
    server = await model(calls(CallPart(f"srv__{tool}")), *[text("x")] * 20, text("done"))
    talk = await opened(house, server, "greedy_server")
    await talk.run()
    assert results(server.requests[-1])[0].startswith("20 answers, ")
    assert (len(server.requests), await attempts(house)) == (22, [(22, 0)])


async def test_the_budget_of_the_session_ends_it_earlier(house, model, results):
    server = await model(
        calls(CallPart("srv__in_a_row")), *[text("x", usage=Tokens(input=40, output=10))] * 20, text("done")
    )
    talk = await opened(house, server, "greedy_server", budget_tokens=110, model="gpt-4o")
    await talk.ask("prompt", message="go")
    await talk.until("done")
    assert len(server.requests) == 3
    await talk.ask("session.configure", budget_tokens=10_000)
    await talk.run("more")
    assert "the budget of this session is used up" in results(server.requests[-1])[0]


@pytest.mark.parametrize(
    ("tool", "told"), [("huge", "0 answers, 1 times: the prompt has more than 200,000 characters"), ("late", "done")]
)
async def test_a_prompt_of_ten_megabytes_and_one_after_the_call_do_not_reach_the_model(
    house, model, results, tool, told
):
    server = await model(calls(CallPart(f"srv__{tool}")), calls(CallPart("srv__told")), text("done"))
    talk = await opened(house, server, "greedy_server")
    await talk.run()
    assert results(server.requests[-1])[0].startswith(told)
    assert len(server.requests) == 3


async def test_a_session_that_is_read_only_calls_no_such_tool_at_all(house, model, results):
    server = await model(calls(CallPart("srv__in_a_row")), text("done"))
    talk = await opened(house, server, "greedy_server", mode="read-only")
    await talk.run()
    assert "read-only" in results(server.requests[-1])[0]
    assert len(server.requests) == 2
