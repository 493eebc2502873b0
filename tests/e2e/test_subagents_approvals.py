"""What subagents ask people: the clients of the session above see it and decide it."""

import pytest

from tests.e2e.family import OPENING, Cast, of, results_of, tasks
from zotd.testing.script import CallPart, calls, text

WRITE = calls(CallPart("write", {"path": "a.txt", "content": "one"}))


@pytest.fixture
def family(house, model):
    """`await family(go=[...], a=[...])`: a session in which a person decides, and the model that plays these parts."""

    async def family(**parts):
        hello = parts.pop("hello", {"client": {"name": "ann"}, "can_approve": True})
        server = await model(Cast(**parts))
        client = await house.connect(**hello)
        talk = await house.create("ollama", None, client, **OPENING, base_url=server.openai_url, mode="ask")
        return talk, server

    return family


async def asked(talk):
    return (await talk.until("approval_requested"))[-1]


async def approve(talk, event, decision="allow", session=None, **more):
    about = {"approval": event["approval"], "args_digest": event["args_digest"], "decision": decision}
    await talk.client.ask("approve", session=session or talk.id, **about, **more)


async def test_a_client_of_the_parent_sees_what_a_subagent_asks_and_decides_it(family, house, look):
    talk, server = await family(go=[tasks("a"), text("done")], a=[WRITE, text("written")])
    await talk.ask("prompt", message="go")
    question = await asked(talk)
    (_, child) = (await talk.client.ask("session.family", session=talk.id))["sessions"]
    assert (question["subagent"], question["session"], "seq" in question) == (child["id"], talk.id, False)
    assert question["preview"] == "The subagent does a asks:\n\nnew file a.txt (3 bytes)\n+one"
    assert (child["state"], await talk.state()) == ("waiting", "waiting")
    await approve(talk, question)
    events = await talk.until("done")
    assert [event["by"] for event in look.only(events, "approval_resolved")] == ["ann"]
    assert (house.cwd / "a.txt").read_text() == "one"
    assert results_of(of(server, "go")[1]) == ["written"]


async def test_the_question_of_a_subagent_of_a_subagent_comes_to_the_top(family, look):
    talk, server = await family(go=[tasks("a"), text("done")], a=[tasks("b"), text("of b")], b=[WRITE, text("denied")])
    await talk.ask("prompt", message="go")
    question = await asked(talk)
    await approve(talk, question, "deny")
    events = await talk.until("done")
    assert [event["decision"] for event in look.only(events, "approval_resolved")] == ["deny"]
    assert "denied by the user" in results_of(of(server, "b")[1])[0]


async def test_who_attaches_later_finds_it_in_the_snapshot_and_the_first_decision_wins(family, house):
    talk, _ = await family(go=[tasks("a"), text("done")], a=[WRITE, text("written")])
    await talk.ask("prompt", message="go")
    question = await asked(talk)
    other = await house.follow(talk.id, await house.connect(client={"name": "ben"}, can_approve=True))
    assert other.snapshot["approvals"] == [question]
    (listed,) = (await other.ask("approval.list"))["approvals"]
    assert listed == question
    await approve(other, question, session=question["subagent"])
    about = {"approval": question["approval"], "args_digest": question["args_digest"], "decision": "deny"}
    response = await talk.client.answer("approve", session=question["subagent"], **about)
    assert (response["code"], response["error"]) == ("already_resolved", "ben has allowed it already")
    await talk.until("done")


async def test_what_was_allowed_for_the_session_is_allowed_for_its_subagents(family, look):
    commands = calls(CallPart("bash", {"command": "touch b.txt"}))
    talk, server = await family(go=[commands, tasks("a"), text("done")], a=[commands, WRITE, text("fine")])
    await talk.ask("prompt", message="go")
    await approve(talk, await asked(talk), scope="session")
    question = await asked(talk)
    assert question["tool"] == "write"  # the command of the subagent was not asked about
    await approve(talk, question)
    await talk.until("done")
    assert results_of(of(server, "go")[2])[1] == "fine"


async def test_an_abort_ends_the_questions_of_subagents(family, look):
    talk, _ = await family(go=[tasks("a"), text("done")], a=[WRITE, text("written")])
    await talk.ask("prompt", message="go")
    question = await asked(talk)
    await talk.ask("abort")
    events = await talk.until("done")
    assert [(event["approval"], event["decision"]) for event in look.only(events, "approval_resolved")] == [
        (question["approval"], "cancelled")
    ]
    assert (await talk.ask("approval.list"))["approvals"] == []


async def test_with_nobody_there_it_is_denied_if_the_prompt_of_the_parent_says_so(family):
    talk, server = await family(hello={}, go=[tasks("a"), text("done")], a=[WRITE, text("denied")])
    await talk.run("go", unattended="deny")
    assert "no attached client can decide" in results_of(of(server, "a")[1])[0]
    assert await talk.state() == "idle"


async def test_a_client_without_focus_is_told_that_a_subagent_asks(family, look):
    talk, _ = await family(go=[tasks("a"), text("done")], a=[WRITE, text("written")])
    await talk.ask("presence.update", focused=False, typing=False)
    await talk.ask("prompt", message="go")
    attention = (await talk.until("attention"))[-1]
    assert (attention["reason"], "write of a subagent waits for your decision" in attention["text"]) == (
        "needs_you",
        True,
    )
    await talk.ask("abort")
    await talk.until("done")


async def test_clients_of_the_parent_see_how_far_a_subagent_is(family, look):
    talk, _ = await family(go=[tasks("a"), text("done")], a=[calls(CallPart("glob", {"pattern": "*"})), text("fine")])
    events = await talk.run("go")
    lines = "".join(event["text"] for event in look.only(events, "tool_progress")).splitlines()
    (_, child) = (await talk.client.ask("session.family", session=talk.id))["sessions"]
    assert lines == [f"does a: {child['id']} works", "does a: step 1: glob", "does a: step 2: answer"]
