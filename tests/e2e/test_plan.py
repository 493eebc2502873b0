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


# --- /plan ---------------------------------------------------------------------------------------------------------

WRITE = CallPart("write", {"path": "made.txt", "content": "x"})


async def plan_with_approval(house, server, mode="yolo", client=None):
    """A session that plans, in which a person is asked about a plan, and the events up to that."""
    client = client or await house.connect(role="approve", can_approve=True)
    talk = await house.create("openai", server, client, mode=mode)
    await talk.ask("run_command", name="plan", args="make it")
    return talk, await talk.until("approval_requested")


def decision(asked, **fields):
    return {"approval": asked["approval"], "args_digest": asked["args_digest"], "scope": "once", **fields}


async def test_a_session_only_reads_until_a_person_has_approved_a_plan(house, model, look, results):
    server = await model(calls(WRITE), plan(LOOK, CHANGE), calls(WRITE), text("done"))
    talk, events = await plan_with_approval(house, server)
    assert [one["mode"] for one in look.only(events, "session_changed") if "mode" in one] == ["read-only"]
    assert "denied because this session is read-only" in results(server.requests[1])[0]
    assert "The user wants a plan before anything is changed" in json.dumps(server.requests[0].messages)
    asked = events[-1]
    assert (asked["tool"], asked["preview"], asked.get("choices", [])) == ("plan", "[ ] look\n[ ] change", [])
    proposed = look.only(events, "plan")[-1]
    assert (proposed["plan"]["status"], proposed["planning"]) == ("proposed", True)
    assert await talk.refused("session.plan_edit", revision=1, steps=[]) == "conflict"
    await talk.ask("approve", **decision(asked, decision="allow"))
    events = await talk.until("done")
    assert [one["mode"] for one in look.only(events, "session_changed") if "mode" in one] == ["yolo"]
    approved = look.only(events, "plan")[-1]
    assert (approved["plan"]["status"], approved.get("planning"), bool(approved["plan"]["by"])) == (
        "approved",
        None,
        True,
    )
    assert "the user has approved the plan, and the session's mode is yolo" in results(server.requests[2])[-1]
    assert (house.cwd / "made.txt").read_text() == "x"


async def test_a_plan_is_approved_with_changes(house, model, look, results):
    server = await model(plan(LOOK, CHANGE), text("done"))
    talk, events = await plan_with_approval(house, server)
    await talk.ask("approve", **decision(events[-1], decision="allow", args={"steps": [CHANGE]}))
    events = await talk.until("done")
    assert steps_of(look.only(events, "plan")[-1]) == [("change", "pending")]
    assert "approved the plan with changes. It is now:\n[ ] change" in results(server.requests[1])[-1]


async def test_a_rejected_plan_comes_with_a_comment_and_the_session_goes_on_reading(house, model, look, results):
    server = await model(plan(LOOK), plan(LOOK, CHANGE), calls(WRITE), text("done"))
    talk, events = await plan_with_approval(house, server, mode="ask")
    await talk.ask("approve", **decision(events[-1], decision="deny", reason="too short"))
    events = await talk.until("approval_requested")
    rejected = look.only(events, "plan")[0]
    assert (rejected["plan"]["status"], rejected["plan"]["comment"], rejected["planning"]) == (
        "rejected",
        "too short",
        True,
    )
    assert (
        "the user has rejected the plan: too short; the session is still read-only" in results(server.requests[1])[-1]
    )
    await talk.ask("approve", **decision(events[-1], decision="allow"))
    asked = (await talk.until("approval_requested"))[-1]
    assert asked["tool"] == "write", "the mode is ask again, and no wider one"
    await talk.ask("approve", **decision(asked, decision="allow"))
    await talk.until("done")


async def test_the_first_decision_about_a_plan_counts(house, model):
    server = await model(plan(LOOK), text("done"))
    talk, events = await plan_with_approval(house, server)
    other = await house.connect(role="approve", can_approve=True)
    await other.ask("approve", session=talk.id, **decision(events[-1], decision="deny"))
    assert await talk.refused("approve", **decision(events[-1], decision="allow")) == "already_resolved"
    await talk.until("done")


async def test_neither_rules_nor_the_model_approve_a_plan(house, model, look):
    (house.place.home / "config.toml").write_text('[[rules]]\ntool = "*"\naction = "allow"\n')
    admin = await house.connect(role="admin", can_approve=True)
    await admin.ask("daemon.reload")
    server = await model(plan(LOOK), text("done"))
    _, events = await plan_with_approval(house, server, client=admin)
    assert events[-1]["tool"] == "plan"


async def test_an_edit_before_planning_begins_is_told_with_it(house, model):
    server = await model(plan(LOOK), text("ok"), text("I see"))
    talk, _ = await follow_a_plan(house, "openai", server)
    await talk.ask("session.plan_edit", revision=1, steps=[CHANGE])
    await talk.ask("run_command", name="plan", args="go on")
    await talk.until("done")
    said = json.dumps(server.requests[-1].messages)
    assert "The user wants a plan before anything is changed" in said
    assert "The user has changed the plan. It is now:" in said


async def test_only_who_may_approve_ends_the_planning(house, model, look):
    server = await model(text("hello"))
    person = await house.connect(role="approve", can_approve=True)
    talk = await house.create("openai", server, person, mode="yolo")
    guest = await house.connect(role="submit")
    begun = await guest.ask("run_command", session=talk.id, name="plan")
    assert begun["text"].startswith("the session is read-only until you approve a plan")
    assert await guest.refused("run_command", session=talk.id, name="plan", args="off") == "forbidden"
    assert await guest.refused("session.configure", session=talk.id, mode="yolo") == "forbidden"
    assert (await talk.ask("session.plan"))["planning"] is True
    ended = await talk.ask("run_command", name="plan", args="off")
    assert ended["text"] == "planning has ended; the mode is yolo again"
    assert await talk.refused("run_command", name="plan", args="off") == "conflict"
    await talk.run("hello")
    assert "plan" not in json.dumps(server.requests[0].messages), "it never knew"


async def test_another_mode_ends_the_planning(house, model, look):
    server = await model(text("ok"), plan(LOOK), text("done"))
    person = await house.connect(role="approve", can_approve=True)
    talk = await house.create("openai", server, person, mode="yolo")
    await talk.ask("run_command", name="plan", args="make it")
    await talk.until("done")
    await talk.ask("set_mode", mode="ask")
    assert (await talk.ask("session.plan"))["planning"] is False
    events = await talk.run("go on")
    assert look.only(events, "plan")[-1]["plan"]["status"] == "draft"
    assert "its mode is ask again" in json.dumps(server.requests[1].messages)


async def test_the_question_about_a_plan_survives_kill_9(process, model, look):
    server = await model(plan(LOOK), calls(WRITE), text("done"))
    person = await process.connect(role="approve", can_approve=True)
    keyless = {"base_url": server.openai_url, "secrets": None, "model": "m"}
    talk = await process.create("ollama", None, person, mode="yolo", **keyless)
    await talk.ask("run_command", name="plan", args="make it")
    await talk.until("approval_requested")
    process.restart(signal.SIGKILL)
    person = await process.connect(role="approve", can_approve=True)
    talk = await process.follow(talk.id, person)
    assert (talk.snapshot["planning"], talk.snapshot["plan"]["status"]) == (True, "proposed")
    [asked] = talk.snapshot["approvals"]
    await talk.ask("approve", **decision(asked, decision="allow"))
    events = await talk.until("done")
    assert [one["plan"]["status"] for one in look.only(events, "plan")] == ["approved"]
    assert (process.cwd / "made.txt").exists()


async def test_an_edit_is_told_although_the_planning_ends_in_a_session_that_is_not_in_memory(process, model):
    server = await model(text("ok"), text("I see"))
    keyless = {"base_url": server.openai_url, "secrets": None, "model": "m"}
    talk = await process.create("ollama", None, mode="yolo", **keyless)
    await talk.ask("run_command", name="plan", args="make it")
    await talk.until("done")
    await talk.ask("session.plan_edit", revision=0, steps=[CHANGE])
    process.restart(signal.SIGKILL)
    person = await process.connect(role="approve")
    await person.ask("set_mode", session=talk.id, mode="ask")
    talk = await process.follow(talk.id, person)
    assert (talk.snapshot["planning"], steps_of(talk.snapshot)) == (False, [("change", "pending")])
    await talk.run("go on")
    said = json.dumps(server.requests[-1].messages)
    assert "The user has changed the plan. It is now:" in said
    assert "its mode is ask again" in said


async def test_an_abort_withdraws_the_proposal_and_goes_on_planning(house, model, look):
    server = await model(plan(LOOK), text("ok"))
    talk, _ = await plan_with_approval(house, server)
    await talk.ask("abort")
    assert (await talk.until("plan"))[-1]["plan"]["status"] == "draft"
    assert (await talk.ask("session.plan"))["planning"] is True
    await talk.ask("session.plan_edit", revision=2, steps=[CHANGE])


async def test_a_session_without_the_tool_of_zot_does_not_plan(house, shop, model):
    body = """
    @ext.tool
    def plan(goal: str) -> str:
        "Plan it elsewhere."
        return goal
    """
    shop.write("planner", body)
    server = await model()
    for options in ({}, {"tools": ["read"]}):
        talk = await shop.open(server, **options)
        assert await talk.refused("run_command", name="plan", args="make it") == "conflict"
        assert (await talk.ask("session.plan"))["planning"] is False


async def test_a_cleared_conversation_is_told_again_that_it_plans(house, model):
    server = await model(text("ok"), text("ok"))
    talk = await house.create("openai", server, mode="yolo")
    await talk.ask("run_command", name="plan", args="make it")
    await talk.until("done")
    await talk.ask("clear")
    await talk.run("again")
    assert "The user wants a plan before anything is changed" in json.dumps(server.requests[1].messages)
