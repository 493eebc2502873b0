"""Subagents in the background: a call begins one and is over, and the model is told the answer when there is one."""

import asyncio
import signal

import pytest

from tests.e2e.family import OPENING, Cast, of, results_of, tasks, then
from zotd.testing.script import CallPart, Gate, Hang, ScriptedReply, TextPart, calls, text

HANG = ScriptedReply([TextPart(["Half"]), Hang()])

BEGUN = "j1 (task: does a) works in the background."


def waits(job="j1"):
    return calls(CallPart("job_wait", {"job": job}))


def last(request):
    """What the model reads last."""
    content = request.messages[-1]["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def words(request):
    """All that it reads, but the system prompt."""
    return str(request.messages[1:])


@pytest.fixture
def family(house, model):
    """`await family(go=[...], a=[...])`: a session, and the model that plays these parts."""

    async def family(mode="yolo", config="", **parts):
        if config:
            (house.place.home / "config.toml").write_text(config)
            await (await house.connect(role="admin")).ask("daemon.reload")
        server = await model(Cast(**parts))
        return await house.create("ollama", None, **OPENING, base_url=server.openai_url, mode=mode), server

    return family


async def members(talk):
    return (await talk.client.ask("session.family", session=talk.id))["sessions"]


async def job_ended(talk):
    """The job as it is when it has ended."""
    while True:
        event = (await talk.until("job"))[-1]["job"]
        if event["state"] != "running":
            return event


async def test_the_run_goes_on_and_the_answer_is_told_with_the_next_prompt(family):
    gate = asyncio.Event()
    answer = ScriptedReply([Gate(gate), TextPart(["It is a walrus."])])
    talk, server = await family(go=[tasks("a", background=True), text("It works."), text("I see.")], a=[answer])
    await talk.run("go")
    assert results_of(of(server, "go")[1])[0].startswith(BEGUN)
    (_, child) = await members(talk)
    (listed,) = (await talk.ask("session.jobs"))["jobs"]
    assert (listed["id"], listed["session"], listed["state"]) == ("j1", child["id"], "running")
    gate.set()
    over = await job_ended(talk)
    assert (over["state"], over["exit"]) == ("ended", 0)
    await talk.run("and?")
    assert words(of(server, "go")[2]).count("It is a walrus.") == 1
    assert "[Job j1 (task: does a) has ended: exit 0" in words(of(server, "go")[2])


async def test_the_model_waits_for_the_answer_as_for_any_job(family):
    talk, server = await family(go=[tasks("a", background=True), waits(), text("done")], a=[text("It is a walrus.")])
    await talk.run("go")
    (waited,) = results_of(of(server, "go")[2])[1:]
    assert "does a: step 1: answer" in waited
    assert "It is a walrus." in waited


async def test_a_subagent_that_is_stopped_is_aborted(family):
    stops = calls(CallPart("job_stop", {"job": "j1"}))
    talk, server = await family(go=[tasks("a", background=True), text("It works."), stops, text("done")], a=[HANG])
    await talk.run("go")
    await server.received(3)
    await talk.run("stop it")
    assert "was stopped by the model" in results_of(of(server, "go")[3])[1]
    assert [one["state"] for one in await members(talk)] == ["idle", "idle"]


async def test_an_abort_of_the_run_leaves_it_working(family):
    gate = asyncio.Event()
    answer = ScriptedReply([Gate(gate), TextPart(["It is a walrus."])])
    talk, server = await family(go=[tasks("a", background=True), HANG], a=[answer])
    await talk.ask("prompt", message="go")
    await server.received(3)
    await talk.ask("abort")
    await talk.until("done")
    gate.set()
    assert (await job_ended(talk))["exit"] == 0


async def test_a_subagent_that_fails_says_so_in_its_answer(family):
    talk, server = await family(go=[tasks("a", background=True), waits(), text("done")], a=[])
    await talk.run("go")
    assert "has not done its task" in results_of(of(server, "go")[2])[1]
    (job,) = (await talk.ask("session.jobs"))["jobs"]
    assert (job["state"], job["exit"]) == ("ended", 1)


async def test_there_are_no_more_in_the_background_than_jobs_at_once(family):
    config = "[jobs]\nat_once = 1\n"
    talk, server = await family(config=config, go=[tasks("a", "b", background=True), text("done")], a=[HANG], b=[HANG])
    await talk.run("go")
    results = results_of(of(server, "go")[1])
    assert sorted(one.split(" ")[0] for one in results) == ["1", "j1"]
    assert any("jobs run already" in one for one in results)
    assert len(await members(talk)) == 2  # nothing is left of the one that was refused


async def test_it_ends_with_its_session(family, house):
    talk, server = await family(go=[tasks("a", background=True), text("It works.")], a=[HANG])
    await talk.run("go")
    await server.received(3)
    child = (await members(talk))[1]["id"]
    watcher = await house.connect()
    await watcher.ask("subscribe", topics=["sessions"])
    await talk.client.ask("session.close", session=talk.id)
    while (await watcher.ask("session.get", session=child))["state"] != "idle":
        await watcher.event()


class Restarting:
    """A session in a daemon that is ended and started again."""

    def __init__(self, process, server, talk):
        self.process = process
        self.server = server
        self.talk = talk

    async def restart(self, number):
        await asyncio.to_thread(self.process.restart, number)
        self.talk = await self.process.follow(self.talk.id)

    async def until_asked(self):
        """The pending approvals, as soon as there is one."""
        client = await self.process.connect()
        await client.ask("subscribe", topics=["sessions"])
        while not (found := (await client.ask("approval.list"))["approvals"]):
            await client.event()
        return found


@pytest.fixture
def restarting(process, model):
    async def restarting(mode="yolo", **parts):
        server = await model(Cast(**parts))
        talk = await process.create("ollama", None, **OPENING, base_url=server.openai_url, mode=mode)
        return Restarting(process, server, talk)

    return restarting


async def test_after_a_kill_it_goes_on_with_the_next_run_and_its_answer_is_told_once(restarting):
    go = [tasks("a", background=True), text("It works."), waits(), text("I see."), text("Fine.")]
    case = await restarting(go=go, a=[then(HANG, text("A whole answer."))])
    await case.talk.run("go")
    await case.server.received(3)
    await case.restart(signal.SIGKILL)
    await case.talk.run("and?")
    assert "A whole answer." in results_of(of(case.server, "go")[3])[1]
    assert len(of(case.server, "a")) == 2
    await case.talk.run("and?")
    assert words(of(case.server, "go")[4]).count("[Job j1") == 1
    (job,) = (await case.talk.ask("session.jobs"))["jobs"]
    assert (job["state"], job["exit"]) == ("ended", 0)


async def test_a_stop_of_the_daemon_leaves_what_it_asks_to_the_next_one(restarting):
    writes = calls(CallPart("write", {"path": "a.txt", "content": "one"}))
    go = [tasks("a", background=True), text("It works."), waits(), text("I see.")]
    case = await restarting("ask", go=go, a=[writes, text("It is written.")])
    await case.talk.run("go")
    await case.until_asked()
    await case.restart(signal.SIGTERM)
    (pending,) = await case.until_asked()
    await case.talk.ask("prompt", message="and?")
    decision = {"approval": pending["approval"], "args_digest": pending["args_digest"], "decision": "allow"}
    decider = await case.process.connect(can_approve=True)
    await decider.ask("approve", session=pending["session"], **decision)
    await case.talk.until("done")
    assert "It is written." in results_of(of(case.server, "go")[3])[1]


async def test_what_it_had_answered_before_a_crash_is_told_and_not_asked_again(restarting):
    writes = calls(CallPart("bash", {"command": "echo x >> once.txt"}))
    go = [tasks("a", background=True), text("It works."), text("I see.")]
    case = await restarting(go=go, a=[writes, text("A whole answer.")])
    await case.talk.run("go")
    await job_ended(case.talk)
    await case.restart(signal.SIGKILL)
    await case.talk.run("and?")
    assert "A whole answer." in words(of(case.server, "go")[2])
    assert len(of(case.server, "a")) == 2


async def test_with_resume_auto_it_goes_on_by_itself(restarting):
    go = [tasks("a", background=True), text("It works."), text("I see.")]
    case = await restarting(go=go, a=[then(HANG, text("A whole answer."))])
    await case.talk.run("go")
    await case.server.received(3)
    (case.process.place.home / "config.toml").write_text('resume = "auto"\n')
    await case.restart(signal.SIGKILL)
    await case.server.received(4)
    while (job := (await case.talk.ask("session.jobs"))["jobs"][0])["state"] == "running":
        await case.talk.client.ask("ping")
    assert job["exit"] == 0
    await case.talk.run("and?")
    assert "A whole answer." in words(of(case.server, "go")[2])
