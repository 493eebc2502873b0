"""MCP servers that ask the session's model during a call."""

import signal

import pytest

from tests.bridges.conftest import program
from tests.e2e.shop import Shop, until_state
from tests.e2e.test_mcp import configure
from zotd.core import supervision
from zotd.testing.script import CallPart, Hang, ScriptedReply, calls, text


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Not ready until it says so: on a busy machine a bridge takes longer than the daemon waits for it."""
    monkeypatch.setattr(supervision, "READY_S", 60)


async def opened(house, server, name, **options):
    """A session whose server `srv` is ready."""
    configure(house.place.home / "mcp.json", srv=program(name))
    watcher = await house.connect()
    await watcher.ask("subscribe", topics=["extensions"])
    talk = await Shop(house).open(server, **options)
    await until_state(watcher, "mcp-srv", "ready")
    return talk


async def decide(talk, tool, decision="allow", **more):
    """Decide about the next question, which has to be about this tool; the question."""
    question = (await talk.until("approval_requested"))[-1]
    assert question["tool"] == tool
    decided = {"approval": question["approval"], "args_digest": question["args_digest"], "decision": decision, **more}
    await talk.ask("approve", **decided)
    return question


async def attempts(house):
    """How many requests to models are on record, and how many of them are of unknown cost."""
    report = await (await house.connect()).ask("usage.report")
    return [(row["attempts"], row.get("unknown", 0)) for row in report["rows"]]


async def test_a_person_allows_a_server_to_ask_the_model_for_the_rest_of_the_session(house, model, results):
    thinks = calls(CallPart("srv__think", {"prompt": "How are you?"}))
    server = await model(thinks, text("Fine."), thinks, text("Better."), text("done"))
    talk = await opened(house, server, "sample_server", mode="ask")
    await talk.ask("prompt", message="go")
    await decide(talk, "srv__think")
    question = await decide(talk, "sampling:mcp-srv", scope="session", choice="same")
    assert (
        "nothing of the session, and gets the answer:\n\nsystem: Be brief.\n\nuser: How are you?" in question["preview"]
    )
    await decide(talk, "srv__think")
    await talk.until("done")
    assert [result.partition(" says ")[2] for result in results(server.requests[-1])] == [
        "Fine. (endTurn)",
        "Better. (endTurn)",
    ]
    asked = server.requests[1].body
    assert ("tools" in asked, "go" in str(asked["messages"])) == (False, False)
    assert await attempts(house) == [(5, 0)]


async def test_a_person_who_does_not_want_it_is_what_the_server_is_told(house, model, results):
    server = await model(calls(CallPart("srv__think")), text("done"))
    talk = await opened(house, server, "sample_server", mode="ask")
    await talk.ask("prompt", message="go")
    await decide(talk, "srv__think")
    await decide(talk, "sampling:mcp-srv", "deny")
    await talk.until("done")
    assert "the user does not want it" in results(server.requests[1])[0]


async def test_an_abort_ends_the_request_with_the_call_and_the_session_goes_on(house, model, look):
    server = await model(calls(CallPart("srv__in_a_row")), ScriptedReply([Hang()]), text("here"))
    talk = await opened(house, server, "greedy_server")
    await talk.ask("prompt", message="go")
    await server.received(2)
    await talk.ask("abort")
    await talk.until("done")
    assert (await talk.state(), await attempts(house)) == ("idle", [(2, 1)])
    assert look.only(await talk.run("again"), "turn_end")[-1]["stop"] == "end_turn"


async def test_a_request_that_a_killed_daemon_leaves_is_billed_and_neither_it_nor_the_call_is_made_again(
    process, model
):
    server = await model(calls(CallPart("srv__in_a_row")), ScriptedReply([Hang()]))
    talk = await opened(process, server, "greedy_server")
    await talk.ask("prompt", message="go")
    await server.received(2)
    process.restart(signal.SIGKILL)
    late = await process.follow(talk.id)
    assert "interrupted, outcome unknown" in str(await late.texts())
    assert await attempts(process) == [(2, 1)]
    assert len(server.requests) == 2
