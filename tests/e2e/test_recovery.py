"""After a kill -9 nothing that was accepted is lost, and nothing dangerous runs twice."""

import json
import os
import signal
from contextlib import suppress

import psutil
import pytest

from tests.e2e.shop import Shop
from zotd.core.closings import INTERRUPTED, NOT_RUN
from zotd.testing.script import CallPart, Hang, ScriptedReply, TextPart, calls, text

HAZARD = '''
import json, os
from pathlib import Path

def work(n: int, call: Call):
    """Changes the world."""
    with open("witness", "a") as file:
        file.write(json.dumps([call.reconcile, call.operation_key, n]) + "\\n")
    if call.reconcile:
        state, *rest = Path("answers").read_text().split()
        Path("answers").write_text(" ".join(rest))
        return Result("it was done", structured={"state": state})
    call.progress("started")
    if os.path.exists("hang"):
        open("hang").read()
    return f"done {n}"

for replay in "never", "safe", "idempotent", "reconcile":
    ext.tool(name=replay, replay=replay)(work)
'''
"""Tools of each class that say when they have started, and then hang as long as there is a pipe of that name."""


class Hazard:
    """The extension, seen from outside."""

    def __init__(self, process):
        self.shop = Shop(process)
        self.place = self.shop.write("hazard", HAZARD)
        self.hang()

    def hang(self):
        """From now on calls do not end."""
        os.mkfifo(self.place / "hang")

    def be_quick(self):
        """From now on they do; those that hang already go on hanging."""
        (self.place / "hang").unlink()

    def answer(self, states):
        """What `reconcile` tells, when it is asked for the first time, the second, …"""
        (self.place / "answers").write_text(states)

    @property
    def witness(self):
        """What was made of calls: `runs` or `asked`, each with its operation key and its argument."""
        lines = (self.place / "witness").read_text().splitlines()
        found = [json.loads(line) for line in lines]
        return [("asked" if reconcile else "runs", key, n) for reconcile, key, n in found]

    def seen(self):
        """The same without keys and arguments."""
        return [what for what, _, _ in self.witness]

    def keys(self):
        """The operation keys that were used."""
        return {key for _, key, _ in self.witness}


class Crash:
    """A daemon with a session that needs no key: it can be killed, and the session goes on in the next one."""

    def __init__(self, process, server):
        self.process = process
        self.server = server

    async def begin(self, **options):
        options = {"provider": "ollama", "model": "m", "base_url": self.server.openai_url, "secrets": None} | options
        self.talk = await self.process.create("ollama", None, **options)
        return self.talk

    async def kill(self, **options):
        """Kill the daemon, start it again, and come back; the session, and what was missed."""
        seen = [
            event["seq"] for event in self.talk.client.seen if event.get("session") == self.talk.id if "seq" in event
        ]
        self.process.restart(signal.SIGKILL)
        after = {"epoch": self.talk.epoch, "seq": max(seen)}
        self.talk = await self.process.follow(self.talk.id, after=after, **options)
        return [frame for frame in self.talk.client.seen if "seq" in frame and frame["type"] != "replay_complete"]

    async def go_on(self):
        """`/continue`, and everything that comes of it."""
        answer = await self.talk.ask("run_command", name="continue")
        assert answer["started"] is True
        return await self.talk.until("done")


@pytest.fixture
async def crash(process, model):
    """`await crash(answer, ...)`: a session of which the daemon can be killed."""

    async def crash(*answers, **options):
        made = Crash(process, await model(*answers))
        await made.begin(**options)
        return made

    return crash


@pytest.fixture
def outcomes(results):
    """As `results`, without the word that marks an error on this vendor's wire."""
    return lambda received: [one.removeprefix("Error: ") for one in results(received)]


@pytest.fixture
def hazard(process):
    return Hazard(process)


async def started(talk, number=1):
    """Wait until so many tools have started."""
    for _ in range(number):
        await talk.until("tool_progress")


def said(received, role):
    return [message["content"] for message in received.messages if message["role"] == role]


# --- an input, a request --------------------------------------------------------------------------------------


async def test_queued_inputs_wait_in_their_order_and_run_once_after_a_continue(crash, look):
    case = await crash(ScriptedReply([Hang()]), *[text("fine")] * 4)
    await case.talk.ask("prompt", message="first")
    waiting = [await case.talk.ask("prompt", message=message, sender="me") for message in ("b", "c")]
    await case.talk.ask("queue.move", input=waiting[1]["input"], position=1)
    await case.server.received(1)
    await case.kill()
    await case.kill()
    items = case.talk.snapshot["queue"]
    assert [(item["id"], item["text"], item["sender"]) for item in items] == [
        (waiting[1]["input"], "c", "me"),
        (waiting[0]["input"], "b", "me"),
    ]
    assert (case.talk.snapshot["held"], case.talk.snapshot["session"]["state"]) == (True, "held")
    assert len(case.server.requests) == 1, "a model was called at the start"
    await case.go_on()
    rest = [event for _ in range(2) for event in await case.talk.until("done")]
    assert [look.words(event["content"])[0] for event in look.only(rest, "user_message")] == ["c", "b"]
    assert [said(request, "user")[-1] for request in case.server.requests] == ["first", "first", "c", "b"]
    assert await case.talk.state() == "idle"


async def test_a_request_in_flight_is_sent_again_after_a_continue_and_its_cost_is_unknown(crash, look):
    case = await crash(ScriptedReply([TextPart(["Half a "]), Hang()]), text("A whole answer."))
    await case.talk.ask("prompt", message="go")
    await case.talk.until("text_delta")
    await case.talk.ask("prompt", message="b")  # commits go to the disk in order: what was kept is there
    frames = await case.kill()
    cut = look.only(frames, "interrupted")
    assert [event["what"] for event in cut] == ["reply", "run"]
    assert "Half a" in cut[0]["text"]
    assert "/continue" in cut[1]["text"]
    assert [frame["type"] for frame in frames[-3:]] == ["interrupted", "done", "queue_changed"]
    (row,) = (await case.talk.client.ask("usage.report"))["rows"]
    assert (row["attempts"], row["unknown"]) == (1, 1)
    await case.talk.ask("queue.withdraw", input=case.talk.snapshot["queue"][0]["id"])
    events = await case.go_on()
    assert look.words(look.only(events, "assistant_message")[0]["content"]) == ["A whole answer."]
    first, second = case.server.requests
    assert second.messages == first.messages
    assert await case.talk.texts() == [("user", ["go"]), ("assistant", ["A whole answer."])]


async def test_an_input_that_was_to_join_waits_and_joins_the_continued_run(crash, process, outcomes):
    os.mkfifo(process.cwd / "go")
    case = await crash(calls(CallPart("bash", {"command": "echo started; read < go"})), text("fine"))
    await case.talk.ask("prompt", message="go")
    await started(case.talk)
    joins = await case.talk.ask("prompt", message="to the left", when_busy="steer")
    await case.kill()
    (item,) = case.talk.snapshot["queue"]
    assert (item["id"], item["mode"]) == (joins["input"], "steer")
    await case.go_on()
    assert outcomes(case.server.requests[1]) == [INTERRUPTED]
    assert said(case.server.requests[1], "user") == ["go", "to the left"]
    assert await case.talk.state() == "idle"


# --- calls ----------------------------------------------------------------------------------------------------


async def test_a_command_that_was_running_is_not_run_again_and_everybody_is_told_the_same(
    crash, process, look, outcomes
):
    os.mkfifo(process.cwd / "go")
    script = "echo once >> done; echo $$ > pid; echo started; exec cat go"
    case = await crash(calls(CallPart("bash", {"command": script})), text("I see."))
    await case.talk.ask("prompt", message="go")
    await started(case.talk)
    frames = await case.kill()
    with suppress(psutil.NoSuchProcess):  # the daemon has ended it, or is about to
        psutil.Process(int((process.cwd / "pid").read_text())).kill()
    (result,) = look.only(frames, "tool_result")
    assert (result["is_error"], look.words(result["content"])) == (True, [INTERRUPTED])
    assert [event["what"] for event in look.only(frames, "interrupted")] == ["tool", "run"]
    await case.go_on()
    assert outcomes(case.server.requests[1]) == [INTERRUPTED]
    assert (process.cwd / "done").read_text() == "once\n"


CLASSES = {
    "never": ("never", "", ["runs"], INTERRUPTED),
    "safe": ("safe", "", ["runs", "runs"], "done 1"),
    "idempotent": ("idempotent", "", ["runs", "runs"], "done 1"),
    "it has happened": ("reconcile", "completed", ["runs", "asked"], "it was done"),
    "it has not happened": ("reconcile", "not_started", ["runs", "asked", "runs"], "done 1"),
    "it is known later": ("reconcile", "unknown completed", ["runs", "asked", "asked"], "it was done"),
}
"""By situation: the class, what is told when it is asked about, what is made of the call, and what the model reads."""


@pytest.mark.parametrize("situation", CLASSES)
async def test_a_call_of_an_extension_is_repeated_as_its_tool_allows(crash, hazard, outcomes, situation):
    replay, answers, made, outcome = CLASSES[situation]
    hazard.answer(answers)
    case = await crash(calls(CallPart(replay, {"n": 1})), text("fine"), env=hazard.shop.env)
    await case.talk.ask("prompt", message="go")
    await started(case.talk)
    await case.kill(env=hazard.shop.env)
    hazard.be_quick()
    assert hazard.seen() == ["runs"]
    assert await case.talk.state() == "held"
    await case.go_on()
    assert hazard.seen() == made
    assert len(hazard.keys()) == 1
    assert bool(hazard.keys() - {""}) == (replay in {"idempotent", "reconcile"})
    assert outcomes(case.server.requests[1]) == [outcome]
    assert await case.talk.state() == "idle"


async def test_a_second_crash_while_calls_are_repeated_changes_nothing(crash, hazard, outcomes):
    case = await crash(
        calls(CallPart("idempotent", {"n": 1}), CallPart("never", {"n": 2})), text("fine"), env=hazard.shop.env
    )
    await case.talk.ask("prompt", message="go")
    await started(case.talk, 2)
    for _ in range(2):
        await case.kill(env=hazard.shop.env)
        assert len(case.server.requests) == 1
        await case.talk.ask("run_command", name="continue")
        await started(case.talk)
    await case.kill(env=hazard.shop.env)
    hazard.be_quick()
    await case.go_on()
    assert sorted(n for _, _, n in hazard.witness) == [1, 1, 1, 1, 2]
    assert len({key for _, key, n in hazard.witness if n == 1}) == 1
    assert sorted(outcomes(case.server.requests[1])) == sorted(["done 1", INTERRUPTED])


async def test_each_unmatched_call_of_a_step_is_treated_as_its_own_kind_wants(crash, hazard, process, look, outcomes):
    (process.cwd / "a.txt").write_text("walrus")
    hazard.answer("completed")
    kinds = "never", "idempotent", "reconcile", "safe"
    case = await crash(
        calls(
            *(CallPart(kind, {"n": n}) for n, kind in enumerate(kinds)),
            CallPart("write", {"path": "x", "content": "y"}),
            CallPart("read", {"path": "a.txt"}),
        ),
        text("fine"),
        env=hazard.shop.env,
    )
    await case.talk.ask("prompt", message="go")
    await started(case.talk, len(kinds))
    frames = await case.kill(env=hazard.shop.env)
    assert [look.words(frame["content"]) for frame in look.only(frames, "tool_result")] == [[INTERRUPTED]]
    hazard.be_quick()
    await case.go_on()
    found = outcomes(case.server.requests[1])
    assert sorted(found[:-1]) == sorted([INTERRUPTED, "done 1", "it was done", "done 3", NOT_RUN])
    assert "walrus" in found[-1]
    assert not (process.cwd / "x").exists(), "it was meant to follow a call of which nobody knows whether it happened"


async def test_calls_that_never_started_are_made_when_nothing_before_them_is_unknown(crash, hazard, process, outcomes):
    first = CallPart("idempotent", {"n": 1})
    case = await crash(
        calls(first, CallPart("write", {"path": "x", "content": "y"})), text("fine"), env=hazard.shop.env
    )
    await case.talk.ask("prompt", message="go")
    await started(case.talk)
    await case.kill(env=hazard.shop.env)
    hazard.be_quick()
    await case.go_on()
    assert (process.cwd / "x").read_text() == "y"
    assert outcomes(case.server.requests[1])[0] == "done 1"


async def test_a_call_is_not_repeated_when_its_extension_is_gone(crash, hazard, outcomes):
    case = await crash(calls(CallPart("idempotent", {"n": 1})), text("fine"), env=hazard.shop.env)
    await case.talk.ask("prompt", message="go")
    await started(case.talk)
    (hazard.place / "extension.json").unlink()
    await case.kill()
    await case.go_on()
    assert (hazard.seen(), outcomes(case.server.requests[1])) == (["runs"], [INTERRUPTED])


async def test_a_prompt_instead_of_a_continue_closes_the_interrupted_run_and_repeats_nothing(
    crash, hazard, look, outcomes
):
    case = await crash(
        calls(CallPart("idempotent", {"n": 1}), CallPart("write", {"path": "x"})), text("fine"), env=hazard.shop.env
    )
    await case.talk.ask("prompt", message="go")
    await started(case.talk)
    await case.kill(env=hazard.shop.env)
    hazard.be_quick()
    events = await case.talk.run("no, something else")
    assert [look.words(event["content"]) for event in look.only(events, "tool_result")] == [[INTERRUPTED], [NOT_RUN]]
    assert outcomes(case.server.requests[1]) == [INTERRUPTED, NOT_RUN]
    assert said(case.server.requests[1], "user")[-1] == "no, something else"
    assert hazard.seen() == ["runs"]
    assert await case.talk.refused("run_command", name="continue") == "conflict"


async def test_an_abort_of_a_continued_run_gives_every_call_an_end(crash, hazard, look):
    case = await crash(
        calls(CallPart("idempotent", {"n": 1}), CallPart("write", {"path": "x"})), text("fine"), env=hazard.shop.env
    )
    await case.talk.ask("prompt", message="go")
    await started(case.talk)
    await case.kill(env=hazard.shop.env)
    await case.talk.ask("run_command", name="continue")
    await started(case.talk)
    await case.talk.ask("abort")
    events = await case.talk.until("done")
    assert len(look.only(events, "tool_result")) == 2
    hazard.be_quick()
    assert (await case.talk.run("again"))[-1]["type"] == "done"


# --- going on -------------------------------------------------------------------------------------------------


async def test_after_an_abort_the_model_is_asked_again_as_if_it_had_said_nothing(house, model, look):
    server = await model(ScriptedReply([TextPart(["Half a "]), Hang()]), text("A whole answer."))
    talk = await house.create("openai", server)
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    await talk.ask("abort")
    await talk.until("done")
    await talk.ask("run_command", name="continue")
    await talk.until("done")
    assert server.requests[1].messages == server.requests[0].messages
    assert await talk.texts() == [("user", ["go"]), ("assistant", ["A whole answer."])]


async def test_there_is_nothing_to_go_on_with_before_the_first_prompt_and_after_an_answer(house, model):
    talk = await house.create("openai", await model(text("hi"), ScriptedReply([Hang()])))
    assert await talk.refused("run_command", name="continue") == "conflict"
    await talk.run()
    assert await talk.refused("run_command", name="continue") == "conflict"
    await talk.ask("prompt", message="again")
    assert await talk.refused("run_command", name="continue") == "busy"
    await talk.ask("abort")


async def test_an_interrupted_summary_is_requested_again_and_not_continued(crash):
    case = await crash(text("hi"), ScriptedReply([Hang()]))
    await case.talk.run()
    await case.talk.ask("compact")
    await case.server.received(2)
    frames = await case.kill()
    assert [frame["type"] for frame in frames] == ["interrupted", "done"]
    assert "/continue" not in frames[0]["text"]
    assert await case.talk.state() == "idle"


async def test_a_session_may_go_on_by_itself(tmp_path, crash):
    (tmp_path / "zot" / "config.toml").write_text('resume = "auto"\n')
    case = await crash(ScriptedReply([Hang()]), text("fine"))
    await case.talk.ask("prompt", message="go")
    await case.server.received(1)
    case.process.restart(signal.SIGKILL)
    await case.server.received(2)
    talk = await case.process.follow(case.talk.id, after={"epoch": case.talk.epoch, "seq": 0})
    while not any(frame["type"] == "assistant_message" for frame in talk.client.seen):
        await talk.client.event()
