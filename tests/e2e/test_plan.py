"""A plan is a value of a session: the model and people change it, everybody sees it, and it survives what sessions survive."""

import asyncio
import json
import signal

from zotd.testing.script import CallPart, Gate, ScriptedReply, TextPart, calls, text

LOOK, CHANGE = {"text": "look"}, {"text": "change"}


def plan(*steps):
    return calls(CallPart("plan", {"steps": list(steps)}))


def steps_of(found):
    return [(step["text"], step.get("state", "pending")) for step in found["plan"]["steps"]]


async def follow_a_plan(house, vendor, server):
    talk = await house.create(vendor, server, mode="yolo")
    return talk, await talk.run("make a plan")


async def test_everybody_sees_the_plan_of_the_model_and_its_states(house, vendor, model, look, results):
    server = await model(plan(LOOK, CHANGE), plan(LOOK | {"state": "done"}, CHANGE | {"state": "active"}), text("ok"))
    talk, events = await follow_a_plan(house, vendor, server)
    shown = look.only(events, "plan")
    assert [steps_of(one) for one in shown] == [
        [("look", "pending"), ("change", "pending")],
        [("look", "done"), ("change", "active")],
    ]
    assert [(one["plan"]["revision"], one["plan"]["status"], one["plan"]["by"]) for one in shown] == [
        (1, "draft", ""),
        (2, "draft", ""),
    ]
    assert "the plan has 2 steps, 0 done; the user sees it" in results(server.requests[1])[0]
    late = await house.follow(talk.id)
    assert late.snapshot["plan"] == shown[-1]["plan"] == (await talk.ask("session.plan"))["plan"]


async def test_of_two_edits_of_the_same_plan_the_first_one_counts(house, model, look):
    server = await model(plan(LOOK), text("ok"))
    talk, _ = await follow_a_plan(house, "openai", server)
    other = await house.connect()
    edited = await talk.ask("session.plan_edit", revision=1, steps=[LOOK, CHANGE])
    assert steps_of(edited) == [("look", "pending"), ("change", "pending")]
    assert edited["plan"]["revision"] == 2
    assert await other.refused("session.plan_edit", session=talk.id, revision=1, steps=[]) == "conflict"
    assert (await talk.ask("session.plan")) == edited
    assert await talk.refused("session.plan_edit", revision=2, steps=[LOOK] * 51) == "bad_request"
    event = (await talk.until("plan"))[-1]
    assert event["plan"] == edited["plan"]


async def test_the_model_is_told_of_an_edit_with_its_next_request_and_only_then(house, vendor, model):
    server = await model(plan(LOOK), text("ok"), text("sure"), text("again"))
    talk, _ = await follow_a_plan(house, vendor, server)
    for text_ in ("read", "run the tests"):
        revision = (await talk.ask("session.plan"))["plan"]["revision"]
        await talk.ask("session.plan_edit", revision=revision, steps=[{"text": text_}])
    await talk.run("go on")
    said = json.dumps(server.requests[-1].messages)
    assert said.count("The user has changed the plan") == 1
    assert "[ ] run the tests" in said
    assert "[ ] read" not in said
    await talk.run("and on")
    assert json.dumps(server.requests[-1].messages).count("The user has changed the plan") == 1


async def test_the_model_cannot_overwrite_an_edit_that_it_has_not_seen(house, model, look, results):
    gate = asyncio.Event()
    held = ScriptedReply([TextPart(["Well, "]), Gate(gate), CallPart("plan", {"steps": [CHANGE]})])
    server = await model(plan(LOOK), held, plan(CHANGE), text("ok"))
    talk = await house.create("openai", server, mode="yolo")
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    await talk.ask("session.plan_edit", revision=1, steps=[{"text": "run the tests"}])
    gate.set()
    events = await talk.until("done")
    assert [one["name"] for one in look.only(events, "tool_result") if one["is_error"]] == ["plan"]
    assert "the user has changed it since you last saw it" in results(server.requests[2])[-1]
    assert steps_of(look.only(events, "plan")[-1]) == [("change", "pending")]


async def test_a_plan_survives_kill_9_and_is_that_of_its_time_in_forks_and_after_a_rewind(process, model, look):
    server = await model(plan(LOOK), text("first"), plan(LOOK, CHANGE), text("second"))
    talk = await process.create("openai", server, mode="yolo")
    first = await talk.run("one")
    await talk.run("two")
    await talk.ask("session.plan_edit", revision=2, steps=[CHANGE])
    process.restart(signal.SIGKILL)
    talk = await process.follow(talk.id)
    assert steps_of(talk.snapshot) == [("change", "pending")]
    assert talk.snapshot["plan"]["by"]
    seq = look.only(first, "assistant_message")[-1]["seq"]
    forked = await talk.ask("session.fork", seq=seq)
    fork = await process.follow(forked["session"]["id"])
    assert steps_of(fork.snapshot) == [("look", "pending")]
    await talk.ask("session.rewind", seq=seq)
    back = await talk.ask("session.plan")
    assert steps_of(back) == [("look", "pending")]
    assert back["plan"]["revision"] == 4, "nobody has seen this revision with other steps"


async def test_an_exported_plan_is_imported(process, model, tmp_path):
    server = await model(plan(LOOK), text("ok"))
    talk = await process.create("openai", server, mode="yolo")
    await talk.run("one")
    exported = await talk.ask("session.export", format="jsonl")
    path = tmp_path / "talk.jsonl"
    path.write_text(exported["text"])
    admin = await process.connect(role="admin")
    made = await admin.ask("session.import", path=str(path))
    late = await process.follow(made["session"]["id"])
    assert steps_of(late.snapshot) == [("look", "pending")]


async def test_clearing_a_conversation_leaves_no_plan(house, model):
    server = await model(plan(LOOK), text("ok"), text("hello"))
    talk, _ = await follow_a_plan(house, "openai", server)
    await talk.ask("session.plan_edit", revision=1, steps=[CHANGE])
    await talk.ask("clear")
    assert steps_of(await talk.ask("session.plan")) == []
    await talk.run("hello")
    assert "plan" not in json.dumps(server.requests[-1].messages)
