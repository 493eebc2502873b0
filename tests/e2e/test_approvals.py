"""Calls that people decide about, in a real daemon."""

import asyncio
import json
import os
import sqlite3
from contextlib import closing

import pytest

from zotd.testing.script import CallPart, calls, text

WRITE = calls(CallPart("write", {"path": "a.txt", "content": "one\n"})), text("written")


@pytest.fixture
def bench(house, model):
    """A session that asks, its scripted model, and somebody who decides."""

    async def bench(*answers, mode="ask", client=None, **options):
        server = await model(*answers)
        client = client or await house.connect(client={"name": "ann"}, can_approve=True)
        talk = await house.create("openai", server, client, mode=mode, **options)
        return talk, server

    return bench


async def asked_by(talk):
    """Prompt; the question that comes of it."""
    await talk.ask("prompt", message="go")
    return (await talk.until("approval_requested"))[-1]


async def approve(talk, event, decision="allow", **fields):
    return await talk.ask(
        "approve", approval=event["approval"], args_digest=event["args_digest"], decision=decision, **fields
    )


async def refused(talk, event, decision="allow", **fields):
    """The code and the sentence with which a decision is refused."""
    about = {"approval": event["approval"], "args_digest": event["args_digest"], "decision": decision, **fields}
    response = await talk.client.answer("approve", session=talk.id, **about)
    return response["code"], response["error"]


async def test_a_call_waits_until_it_is_allowed(bench, house, look):
    talk, _ = await bench(*WRITE)
    asked = await asked_by(talk)
    assert asked["preview"] == "new file a.txt (4 bytes)\n+one"
    assert await talk.state() == "waiting"
    assert not (house.cwd / "a.txt").exists()
    await approve(talk, asked)
    rest = await talk.until("done")
    assert (house.cwd / "a.txt").read_text() == "one\n"
    assert look.only(rest, "approval_resolved")[0]["by"] == "ann"


async def test_a_denied_call_reaches_the_model_with_the_reason(bench, house, results):
    talk, server = await bench(*WRITE)
    await approve(talk, await asked_by(talk), "deny", reason="wrong place")
    await talk.until("done")
    assert results(server.requests[1]) == ["Error: denied by the user: wrong place"]
    assert not (house.cwd / "a.txt").exists()


async def test_the_first_of_two_people_decides_and_the_other_learns_who(bench, house):
    talk, _ = await bench(*WRITE)
    asked = await asked_by(talk)
    other = await house.follow(talk.id, await house.connect(client={"name": "ben"}, can_approve=True))
    assert other.snapshot["approvals"] == [{key: asked[key] for key in asked if key != "seq"}]
    assert (await other.ask("approval.list"))["approvals"] == other.snapshot["approvals"]
    await approve(other, asked)
    assert await refused(talk, asked, "deny") == ("already_resolved", "ben has allowed it already")
    assert [event["by"] for event in await talk.until("approval_resolved")][-1:] == ["ben"]
    await talk.until("done")


async def test_a_decision_about_other_arguments_is_stale(bench):
    talk, _ = await bench(*WRITE)
    asked = await asked_by(talk)
    assert (await refused(talk, {**asked, "args_digest": "0" * 64}))[0] == "stale_args"
    await talk.ask("abort")
    await talk.until("done")


async def test_a_person_may_have_it_run_with_other_arguments(bench, house):
    talk, _ = await bench(*WRITE)
    await approve(talk, await asked_by(talk), args={"path": "b.txt", "content": "two"})
    await talk.until("done")
    assert [path.name for path in house.cwd.iterdir()] == ["b.txt"]


def bash(command):
    return calls(CallPart("bash", {"command": command}))


BASH = bash("echo a")


async def test_for_this_session_means_that_the_same_is_not_asked_again(bench, look):
    talk, _ = await bench(BASH, BASH, text("done"))
    asked = await asked_by(talk)
    assert asked["rule"] == '[[rules]]\ntool = "bash"\nmatch = "echo a"\naction = "allow"\n'
    await approve(talk, asked, scope="session")
    assert look.only(await talk.until("done"), "approval_requested") == []


async def test_always_writes_the_rule_that_was_shown_and_holds_in_other_sessions_at_once(bench, house, look):
    talk, _ = await bench(BASH, text("done"))
    asked = await asked_by(talk)
    await approve(talk, asked, scope="always")
    await talk.until("notice")
    assert (house.place.home / "config.toml").read_text() == asked["rule"]
    await talk.ask("abort")
    other, _ = await bench(BASH, text("done"))
    assert look.only(await other.run(), "approval_requested") == []


async def test_what_begins_with_the_same_words_is_allowed_also_by_the_next_daemon(process, model, look):
    replies = bash("echo a -n"), bash("echo b"), text("one"), bash("cd . && echo c"), bash("echo d"), text("two")
    talk = await process.create("openai", await model(*replies), mode="ask")
    asked = await asked_by(talk)
    assert [(one["id"], one["text"], one["scopes"]) for one in asked["choices"]] == [
        ("same", "only this command", ["session", "always"]),
        ("prefix", "echo *", ["session", "always"]),
    ]
    await approve(talk, asked, scope="session", choice="prefix")
    assert look.only(await talk.until("done"), "approval_requested") == []
    process.restart(9)
    again = await process.follow(talk.id, await process.connect(can_approve=True), env={"PATH": os.environ["PATH"]})
    await again.ask("session.configure", secrets={"api_key": "sk-scripted-key"})
    asked = await asked_by(again)
    assert [(one["text"], one["scopes"]) for one in asked["choices"]] == [("cd ., echo *", ["session"])]
    await approve(again, asked)
    assert look.only(await again.until("done"), "approval_requested") == []


async def test_a_prefix_that_is_always_allowed_holds_in_other_sessions(bench, house, look):
    talk, _ = await bench(bash("echo a -n"), text("done"))
    asked = await asked_by(talk)
    await approve(talk, asked, scope="always", choice="prefix")
    await talk.until("notice")
    assert (house.place.home / "config.toml").read_text() == asked["choices"][1]["rules"]
    await talk.ask("abort")
    other, _ = await bench(bash("echo b"), text("done"))
    assert look.only(await other.run(), "approval_requested") == []


async def test_every_edit_in_the_workspace_can_be_allowed_for_the_session(bench, house, look):
    outside = calls(CallPart("write", {"path": str(house.place.home / "x"), "content": "x"}))
    hook = calls(CallPart("write", {"path": ".git/hooks/pre-commit", "content": "x"}))
    talk, _ = await bench(*WRITE[:1], calls(CallPart("write", {"path": "b/c.txt", "content": "two"})), hook, outside)
    asked = await asked_by(talk)
    assert [(one["id"], one["scopes"]) for one in asked["choices"]] == [
        ("same", ["session", "always"]),
        ("edits", ["session"]),
    ]
    assert "is not offered for this call" in (await refused(talk, asked, scope="always", choice="edits"))[1]
    await approve(talk, asked, scope="session", choice="edits")
    for path in (".git/hooks/pre-commit", str(house.place.home / "x")):
        again = (await talk.until("approval_requested"))[-1]
        assert (again["args"]["path"], [one["id"] for one in again["choices"]]) == (path, ["same"])
        await approve(talk, again, "deny")
    assert (house.cwd / "b/c.txt").read_text() == "two"
    other, _ = await bench(*WRITE)
    assert (await asked_by(other))["tool"] == "write"


async def test_who_may_not_decide_is_refused_a_wider_choice_too(bench, house):
    talk, _ = await bench(bash("echo a"), text("done"))
    asked = await asked_by(talk)
    low = await house.connect(client={"name": "low"}, role="submit")
    about = {"approval": asked["approval"], "args_digest": asked["args_digest"], "decision": "allow"}
    response = await low.answer("approve", session=talk.id, **about, scope="session", choice="prefix")
    assert response["code"] == "forbidden"
    assert await talk.state() == "waiting"


async def test_a_rule_that_cannot_be_saved_is_said_before_anything_is_decided(bench, house):
    talk, _ = await bench(BASH, text("done"))
    asked = await asked_by(talk)
    (house.place.home / "config.toml").write_text("rules = [")
    code, sentence = await refused(talk, asked, scope="always")
    assert (code, "not valid TOML" in sentence) == ("conflict", True)
    assert await talk.state() == "waiting"
    await talk.ask("abort")
    await talk.until("done")


async def test_an_abort_cancels_pending_requests(bench, look):
    talk, _ = await bench(*WRITE)
    asked = await asked_by(talk)
    await talk.ask("abort")
    resolved = look.only(await talk.until("approval_resolved"), "approval_resolved")
    assert [(one["approval"], one["decision"]) for one in resolved] == [(asked["approval"], "cancelled")]
    assert (await talk.ask("approval.list"))["approvals"] == []


async def test_read_only_denies_and_set_mode_changes_it_from_the_next_call_on(bench, house, results):
    talk, server = await bench(*WRITE, *WRITE, mode="read-only")
    await talk.run()
    assert "read-only" in results(server.requests[1])[0]
    await talk.ask("set_mode", mode="yolo")
    changed = await talk.until("session_changed")
    assert changed[-1]["mode"] == "yolo"
    await talk.run()
    assert (house.cwd / "a.txt").exists()


async def test_a_role_that_may_not_decide_can_neither_approve_nor_loosen_the_mode(bench, house):
    talk, _ = await bench(*WRITE)
    weak = await house.connect(client={"name": "bot"}, role="submit", can_approve=True)
    asked = await asked_by(talk)
    decision = {"approval": asked["approval"], "args_digest": asked["args_digest"], "decision": "allow"}
    for command, fields in (
        ("approve", decision),
        ("set_mode", {"mode": "yolo"}),
        ("session.configure", {"mode": "yolo"}),
    ):
        assert (await weak.refused(command, session=talk.id, **fields)) == "forbidden", command
    await weak.ask("session.configure", session=talk.id, mode="read-only")
    await talk.ask("abort")
    await talk.until("done")


async def test_a_client_that_leaves_decides_nothing(bench, house):
    talk, _ = await bench(*WRITE)
    asked = await asked_by(talk)
    await talk.ask("detach")
    other = await house.follow(talk.id)
    assert [one["approval"] for one in other.snapshot["approvals"]] == [asked["approval"]]
    await approve(other, asked)
    await other.until("done")


# --- nobody there -----------------------------------------------------------------------------------------------------


async def test_a_request_without_deciders_waits_for_a_client_that_attaches_later(bench, house):
    talk, _ = await bench(*WRITE, client=await house.connect(client={"name": "script"}))
    asked = await asked_by(talk)
    listed = await (await house.connect()).ask("approval.list")
    assert [(one["approval"], one["session"]) for one in listed["approvals"]] == [(asked["approval"], talk.id)]
    await approve(talk, asked)
    await talk.until("done")


async def test_an_unattended_input_may_have_its_calls_denied_instead(bench, house, results):
    talk, server = await bench(*WRITE, client=await house.connect(client={"name": "script"}))
    await talk.run(unattended="deny")
    assert "--wait" in results(server.requests[1])[0]


@pytest.mark.parametrize("variables", [{"ZOT_APPROVAL_MODE": ""}])  # else it would be stronger than the file
async def test_the_user_is_notified_of_a_request_without_attached_clients(process, model):
    said = process.place.home / "said"
    os.mkfifo(said)
    command = ["sh", "-c", f'echo "$1" > {said}', "sh", "zot: {text}"]
    (process.place.home / "config.toml").write_text(
        f'[approval]\nmode = "ask"\nnotify_command = {json.dumps(command)}\n'
    )
    process.restart(15)
    talk = await process.create("openai", await model(*WRITE))
    await talk.ask("prompt", message="go")
    assert (await asyncio.to_thread(said.read_text)).startswith("zot: write waits")
    await talk.until("approval_requested")
    await talk.ask("abort")
    await talk.until("done")


# --- a restart --------------------------------------------------------------------------------------------------------


async def test_a_question_survives_the_daemon_and_its_answer_continues_the_run(process, model, look):
    server = await model(*WRITE)
    talk = await process.create("openai", server, mode="ask")
    asked = await asked_by(talk)
    process.restart(9)
    client = await process.connect(client={"name": "ben"}, can_approve=True)
    listed = (await client.ask("approval.list"))["approvals"]
    assert [{**one, "seq": asked["seq"]} for one in listed] == [asked]
    after = {"epoch": talk.epoch, "seq": asked["seq"]}
    again = await process.follow(talk.id, client, after=after, env={"PATH": process.place.env["PATH"]})
    await again.ask("session.configure", secrets={"api_key": "sk-scripted-key"})
    await approve(again, asked)
    events = await again.until("done")
    assert (process.cwd / "a.txt").read_text() == "one\n"
    assert look.only(events, "approval_requested") == []


async def test_a_question_that_expired_while_no_daemon_ran_is_not_shown_as_open(process, model, look):
    (process.place.home / "config.toml").write_text("[approval]\nttl_s = 3600\n")
    process.restart(15)
    talk = await process.create("openai", await model(*WRITE), mode="ask")
    asked = await asked_by(talk)
    process.daemon.end(9)
    with closing(sqlite3.connect(process.place.home / "zot.db")) as database, database:
        before, after = '"expires":"2', '"expires":"1'
        database.execute("UPDATE records SET body = replace(body, ?, ?) WHERE kind = 'approval'", (before, after))
    process.daemon.start()
    client = await process.connect(can_approve=True)
    assert (await client.ask("approval.list"))["approvals"] == []
    again = await process.follow(talk.id, client, after={"epoch": talk.epoch, "seq": asked["seq"]})
    assert (again.snapshot["approvals"], again.snapshot["session"]["state"]) == ([], "held")
    (ended,) = look.only(client.seen, "approval_resolved")
    assert (ended["approval"], ended["decision"], ended["by"]) == (asked["approval"], "deny", "")
    assert (await refused(again, asked))[0] == "already_resolved"
