"""After a kill -9, or an orderly stop, a family goes on: nothing runs twice, and no answer is lost."""

import asyncio
import os
import signal

import pytest

from tests.e2e.family import OPENING, Cast, of, results_of, tasks, then
from zotd.core.closings import INTERRUPTED
from zotd.testing.script import CallPart, Hang, ScriptedReply, TextPart, calls, text

HANG = ScriptedReply([TextPart(["Half"]), Hang()])


class Family:
    """A session of which the daemon can be killed."""

    def __init__(self, process, server, talk):
        self.process = process
        self.server = server
        self.talk = talk

    async def restart(self, number=signal.SIGKILL):
        await asyncio.to_thread(self.process.restart, number)
        self.talk = await self.process.follow(self.talk.id)

    async def go_on(self):
        assert (await self.talk.ask("run_command", name="continue"))["started"] is True
        return await self.talk.until("done")

    async def members(self):
        return (await self.talk.client.ask("session.family", session=self.talk.id))["sessions"]

    async def states(self):
        return [one["state"] for one in await self.members()]


@pytest.fixture
def family(process, model):
    """`await family(go=[...], a=[...])`: the session, with the model that plays these parts."""

    async def family(mode="yolo", **parts):
        server = await model(Cast(**parts))
        talk = await process.create("ollama", None, **OPENING, base_url=server.openai_url, mode=mode)
        return Family(process, server, talk)

    return family


async def test_a_subagent_that_was_cut_goes_on_when_its_parent_does(family):
    case = await family(go=[tasks("a"), text("done")], a=[then(HANG, text("A whole answer."))])
    await case.talk.ask("prompt", message="go")
    await case.server.received(2)
    await case.restart()
    assert await case.states() == ["held", "held"]
    await case.go_on()
    assert results_of(of(case.server, "go")[1]) == ["A whole answer."]
    assert await case.states() == ["idle", "idle"]
    assert len(of(case.server, "a")) == 2


async def test_a_subagent_that_had_finished_is_not_asked_again(family):
    case = await family(go=[tasks("a", "b"), text("done")], a=[text("one")], b=[then(HANG, text("two"))])
    watcher = await case.process.connect()
    await watcher.ask("subscribe", topics=["sessions"])
    await case.talk.ask("prompt", message="go")
    await case.server.received(3)
    while (await case.states()).count("idle") < 1:
        await watcher.event()
    await case.restart()
    await case.go_on()
    assert sorted(results_of(of(case.server, "go")[1])) == ["one", "two"]
    assert [len(of(case.server, name)) for name in ("a", "b")] == [1, 2]
    assert len(await case.members()) == 3


async def test_a_call_of_a_subagent_that_must_not_run_twice_does_not(family):
    command = "echo ran >> witness; echo > told; exec sleep 600"
    case = await family(
        go=[tasks("a"), text("done")], a=[calls(CallPart("bash", {"command": command})), text("It was cut.")]
    )
    os.mkfifo(case.process.cwd / "told")
    await case.talk.ask("prompt", message="go")
    assert await asyncio.to_thread((case.process.cwd / "told").read_text) == "\n"
    await case.restart()
    await case.go_on()
    assert await asyncio.to_thread((case.process.cwd / "witness").read_text) == "ran\n"
    assert results_of(of(case.server, "a")[1]) == [INTERRUPTED]
    assert results_of(of(case.server, "go")[1]) == ["It was cut."]


@pytest.mark.parametrize("variables", [{"ZOT_RESUME": "auto"}])
async def test_with_resume_auto_all_of_them_go_on_by_themselves(family):
    case = await family(go=[tasks("a"), text("done")], a=[tasks("b"), text("of b")], b=[then(HANG, text("the answer"))])
    await case.talk.ask("prompt", message="go")
    await case.server.received(3)
    await case.restart()
    while await case.states() != ["idle"] * 3:
        await case.talk.client.ask("ping")
    assert results_of(of(case.server, "go")[-1]) == ["of b"]
    assert results_of(of(case.server, "a")[-1]) == ["the answer"]
    assert [len(of(case.server, name)) for name in ("go", "a", "b")] == [2, 2, 2]


async def test_what_a_subagent_asks_is_asked_again_and_the_parent_goes_on_with_the_answer(family, process):
    write = calls(CallPart("write", {"path": "a.txt", "content": "one"}))
    case = await family("ask", go=[tasks("a"), text("done")], a=[write, text("written")])
    await case.talk.ask("prompt", message="go")
    while not (asked := (await case.talk.client.ask("approval.list"))["approvals"]):
        await case.talk.client.ask("ping")
    await case.restart()
    (pending,) = (await case.talk.client.ask("approval.list"))["approvals"]
    assert pending["approval"] == asked[0]["approval"]
    decider = await process.connect(can_approve=True)
    decision = {"approval": pending["approval"], "args_digest": pending["args_digest"], "decision": "allow"}
    await decider.ask("approve", session=pending["session"], **decision)
    await case.go_on()
    assert await asyncio.to_thread((process.cwd / "a.txt").read_text) == "one"
    assert results_of(of(case.server, "go")[1]) == ["written"]
