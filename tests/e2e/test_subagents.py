"""Subagents: sessions that do a task for another one."""

import asyncio
from pathlib import Path

import pytest

from tests.e2e.family import OPENING, Cast, of, prompt_of, results_of, tasks, tools_of
from zotd.testing.script import CallPart, Gate, Hang, Refusal, ScriptedReply, TextPart, calls, text
from zotd.wire.content import Tokens


@pytest.fixture
def family(house, model):
    """`await family(go=[...], a=[...])`: a session, and the model that plays these parts."""

    async def family(mode="yolo", config="", **parts):
        if config:
            (house.place.home / "config.toml").write_text(config)
            await (await house.connect(role="admin")).ask("daemon.reload")
        options = {key: parts.pop(key) for key in list(parts) if not isinstance(parts[key], list)}
        server = await model(Cast(**parts))
        talk = await house.create("ollama", None, **OPENING, base_url=server.openai_url, mode=mode, **options)
        return talk, server

    return family


async def below(talk):
    """The subagents of a session, and theirs."""
    return (await talk.client.ask("session.family", session=talk.id))["sessions"][1:]


async def test_a_task_is_done_in_a_session_of_its_own_and_its_last_answer_is_the_result(family, look):
    talk, server = await family(go=[tasks("a"), text("done")], a=[text("It is a walrus.")])
    events = await talk.run("go")
    (result,) = look.only(events, "tool_result")
    assert (look.words(result["content"]), result.get("is_error", False)) == (["It is a walrus."], False)
    assert results_of(of(server, "go")[1]) == ["It is a walrus."]
    (child,) = await below(talk)
    assert (child["name"], child["state"], child["cwd"]) == (
        "does a",
        "idle",
        str((await talk.ask("get_state"))["cwd"]),
    )
    assert child["parent"]["session"] == talk.id
    follower = await talk.client.ask("attach", session=child["id"])
    assert [message["role"] for message in follower["messages"]] == ["user", "assistant"]


async def test_lists_have_subagents_only_if_they_are_wanted(family):
    talk, _ = await family(go=[tasks("a"), text("done")], a=[text("fine")])
    await talk.run("go")
    assert [one["id"] for one in (await talk.client.ask("session.list"))["sessions"]] == [talk.id]
    assert len((await talk.client.ask("session.list", subagents=True))["sessions"]) == 2


async def test_the_name_of_a_subagent_does_not_make_that_of_a_session_ambiguous(family):
    talk, _ = await family(go=[tasks("a"), text("done")], a=[text("fine")], name="does a")
    await talk.run("go")
    assert (await talk.client.ask("session.get", session="does a"))["id"] == talk.id


async def test_the_prompt_of_a_subagent_is_no_earlier_prompt_of_a_person(family):
    talk, _ = await family(go=[tasks("a"), text("done")], a=[text("fine")])
    await talk.run("go")
    assert [one["text"] for one in (await talk.client.ask("prompt.history"))["prompts"]] == ["go"]


async def test_a_subagent_sees_nothing_of_its_parent_and_is_told_what_it_is(family):
    talk, server = await family(go=[tasks("a"), text("done")], a=[text("fine")])
    await talk.run("go")
    (request,) = of(server, "a")
    assert "go" not in [message["content"] for message in request.messages]
    assert "You are a subagent" in str(request.messages[0])


async def test_tasks_of_one_reply_are_done_side_by_side(family):
    meet = asyncio.Barrier(2)

    class Meeting(asyncio.Event):
        async def wait(self):
            await meet.wait()

    both = ScriptedReply([Gate(Meeting()), TextPart(["fine"])])
    talk, server = await family(go=[tasks("a", "b"), text("done")], a=[both], b=[both])
    await talk.run("go")
    assert results_of(of(server, "go")[1]) == ["fine", "fine"]


async def test_only_so_many_work_at_once_and_the_others_wait_in_their_order(family):
    gate = asyncio.Event()
    talk, server = await family(
        config="[agents]\nat_once = 1\n",
        go=[tasks("a", "b", "c"), text("done")],
        a=[ScriptedReply([Gate(gate), TextPart(["one"])])],
        b=[text("two")],
        c=[text("three")],
    )
    await talk.ask("prompt", message="go")
    await talk.until("tool_progress")  # one waits, so the first has its place
    await talk.until("tool_progress")
    gate.set()
    await talk.until("done")
    assert [name for name in map(prompt_of, server.requests) if name != "go"] == ["a", "b", "c"]
    assert results_of(of(server, "go")[1]) == ["one", "two", "three"]


async def test_a_run_begins_only_so_many_subagents(family):
    flood = tasks(*"abcdefgh")
    parts = {name: [text(name)] for name in "abcdefgh"}
    talk, server = await family(config="[agents]\nper_run = 3\n", go=[flood, text("done")], **parts)
    await talk.run("go")
    found = results_of(of(server, "go")[1])
    assert sorted(one for one in found if len(one) == 1) == ["a", "b", "c"]
    assert sum("this run has begun 3 subagents" in one for one in found) == 5
    assert len(await below(talk)) == 3


async def test_subagents_have_subagents_up_to_a_depth_and_the_last_ones_have_no_such_tool(family):
    talk, server = await family(
        go=[tasks("a"), text("done")], a=[tasks("b"), text("of b")], b=[tasks("c"), text("by myself")]
    )
    await talk.run("go")
    assert ["task" in tools_of(of(server, name)[0]) for name in ("go", "a", "b")] == [True, True, False]
    assert 'unknown tool "task"' in results_of(of(server, "b")[1])[0]
    assert results_of(of(server, "go")[1]) == ["of b"]


async def test_a_subagent_that_waits_for_its_own_does_not_keep_them_from_working(family):
    talk, server = await family(
        config="[agents]\nat_once = 1\n", go=[tasks("a"), text("done")], a=[tasks("b"), text("of b")], b=[text("fine")]
    )
    await talk.run("go")
    assert results_of(of(server, "go")[1]) == ["of b"]


async def test_an_ephemeral_session_has_no_subagents(family):
    talk, server = await family(go=[text("fine")], ephemeral=True)
    await talk.run("go")
    assert "task" not in tools_of(of(server, "go")[0])


async def test_a_subagent_has_only_the_tools_that_it_is_given_and_its_parent_has(family):
    talk, server = await family(
        go=[tasks("a", tools=["read"]), tasks("b", tools=["bash"]), text("done")],
        a=[text("fine")],
        tools=("read", "glob", "task"),
    )
    await talk.run("go")
    assert tools_of(of(server, "a")[0]) == ["read"]
    assert "it cannot have the tool bash; there are: read, glob, task" in results_of(of(server, "go")[2])[1]


async def test_a_subagent_has_the_mode_of_its_parent(family, house):
    write = calls(CallPart("write", {"path": "a.txt", "content": "one"}))
    talk, server = await family("read-only", go=[tasks("a"), text("done")], a=[write, text("it was denied")])
    await talk.run("go")
    assert "denied" in results_of(of(server, "a")[1])[0]
    assert not (house.cwd / "a.txt").exists()


async def test_a_narrower_mode_of_the_parent_holds_for_a_subagent_that_works_already(family, house):
    gate = asyncio.Event()
    write = ScriptedReply([Gate(gate), CallPart("write", {"path": "a.txt", "content": "one"})], stop="tool_use")
    wider = calls(CallPart("write", {"path": "b.txt", "content": "one"}))
    talk, server = await family(go=[tasks("a"), text("done")], a=[write, wider, text("it was denied")])
    await talk.ask("prompt", message="go")
    await server.received(2)
    await talk.ask("set_mode", mode="read-only")
    await talk.ask("set_mode", mode="yolo")
    gate.set()
    await talk.until("done")
    assert ["denied" in results_of(request)[-1] for request in of(server, "a")[1:]] == [True, True]
    assert list(house.cwd.glob("*.txt")) == []
    (child,) = await below(talk)
    assert child["mode"] == "read-only"


async def test_an_unknown_model_is_told_to_the_model(family):
    talk, server = await family(go=[tasks("a", model="openai/none"), text("done")])
    await talk.run("go")
    assert "there is no model openai/none" in results_of(of(server, "go")[1])[0]
    assert await below(talk) == []


async def test_a_key_that_was_given_for_one_vendor_does_not_reach_another(house, model):
    server = await model(Cast(go=[tasks("a", model="anthropic/claude-sonnet-4-5"), text("done")]))
    talk = await house.create("openai", server)
    await talk.run("go")
    (found,) = results_of(of(server, "go")[1])
    assert "the subagent could not work: no key for Anthropic" in found
    assert await below(talk) == []


async def test_an_abort_of_the_parent_aborts_all_below_it(family):
    hang = ScriptedReply([Hang()])
    talk, server = await family(go=[tasks("a"), text("never")], a=[tasks("b"), text("never")], b=[hang])
    await talk.ask("prompt", message="go")
    await server.received(3)
    await talk.ask("abort")
    await talk.until("done")
    listed = (await talk.client.ask("session.list", subagents=True))["sessions"]
    assert {one["state"] for one in listed} == {"idle"}
    assert len(listed) == 3


async def test_a_subagent_that_a_person_aborts_is_an_error_of_its_call(family):
    talk, server = await family(go=[tasks("a"), text("done")], a=[ScriptedReply([TextPart(["Half"]), Hang()])])
    await talk.ask("prompt", message="go")
    await server.received(2)
    (child,) = await below(talk)
    await talk.client.ask("abort", session=child["id"])
    await talk.until("done")
    (found,) = results_of(of(server, "go")[1])
    assert f"the subagent {child['id']} has not done its task: it was aborted by the user" in found


async def test_a_subagent_that_fails_is_an_error_of_its_call_with_its_sentence(family):
    talk, server = await family(go=[tasks("a"), text("done")], a=[Refusal(400, "too many walruses")])
    await talk.run("go")
    (found,) = results_of(of(server, "go")[1])
    assert "has not done its task" in found
    assert "too many walruses" in found


async def test_a_subagent_that_never_ends_is_stopped_at_its_step_limit(family):
    again = calls(CallPart("bash", {"command": "true"}))
    talk, server = await family(config="[agents]\nmax_steps = 2\n", go=[tasks("a"), text("done")], a=[again] * 3)
    await talk.run("go")
    assert "the step limit of 2 is reached" in results_of(of(server, "go")[1])[0]


async def test_a_long_answer_is_cut_and_kept_whole_in_a_file(family, house):
    words = "".join(f"line {number}\n" for number in range(20_000))
    talk, server = await family(go=[tasks("a"), text("done")], a=[text(words)])
    await talk.run("go")
    (found,) = results_of(of(server, "go")[1])
    assert len(found) < 60_000
    assert found.startswith("line 0\n")
    assert found.endswith("line 19999\n")
    path = found.partition("the whole answer is in ")[2].partition("]")[0]
    assert await asyncio.to_thread(Path(path).read_text) == words


async def test_what_subagents_cost_counts_for_their_parents(family):
    costs = Tokens(input=10, output=5)
    talk, _ = await family(
        go=[tasks("a"), text("done", usage=costs)], a=[tasks("b"), text("x", usage=costs)], b=[text("y", usage=costs)]
    )
    await talk.run("go")
    info = await talk.client.ask("session.get", session=talk.id)
    assert (info["family_usage"]["input"], info["usage"]["input"]) == (30, 20)


async def test_a_subagent_may_spend_only_what_is_left_to_its_parent(family):
    large = text("much", usage=Tokens(input=900, output=100))
    talk, server = await family(
        go=[tasks("a"), tasks("b"), text("never")], a=[large], b=[text("never")], budget_tokens=1000
    )
    events = await talk.run("go")
    assert of(server, "b") == []
    assert "the budget of this session is used up" in str(events)


async def test_a_session_is_deleted_with_its_subagents(family, house):
    talk, _ = await family(go=[tasks("a"), text("done")], a=[tasks("b"), text("x")], b=[text("y")])
    await talk.run("go")
    admin = await house.connect(role="admin")
    await admin.ask("session.delete", session=talk.id)
    assert (await talk.client.ask("session.list", subagents=True))["sessions"] == []


async def test_a_parent_and_its_subagent_are_not_warned_of_each_other(family, house, look):
    write = calls(CallPart("write", {"path": "a.txt", "content": "one"}))
    talk, _ = await family(go=[tasks("a"), text("done")], a=[write, text("fine")])
    events = await talk.run("go")
    assert not any("both may change the same files" in str(event) for event in look.only(events, "notice"))
