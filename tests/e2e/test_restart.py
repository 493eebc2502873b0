"""What a daemon that was stopped or killed leaves, and what the next one makes of it."""

import json
import os
import signal

import psutil
import pytest

from zotd.testing.script import CallPart, Hang, ScriptedReply, TextPart, calls, text


def committed(events):
    return [event for event in events if "seq" in event]


async def replayed(house, talk, seq):
    """What a client that has read up to `seq` gets when it comes back."""
    late = await house.follow(talk.id, after={"epoch": talk.epoch, "seq": seq})
    frames = [frame for frame in late.client.seen if "seq" in frame and frame["type"] != "replay_complete"]
    return late, frames


@pytest.mark.parametrize(
    ("vendor", "number"), [("anthropic", signal.SIGKILL), ("openai", signal.SIGTERM)], ids=["SIGKILL", "SIGTERM"]
)
async def test_a_session_is_the_same_after_a_restart_and_a_cursor_gives_exactly_what_was_missed(
    process, model, vendor, number
):
    (process.cwd / "a.txt").write_text("walrus")
    server = await model(calls(CallPart("read", {"path": "a.txt"})), text("It says walrus."), text("Again."))
    talk = await process.create(vendor, server, name="sea", reasoning="low", append_system_prompt=["Be brief."])
    events = committed(await talk.run("what does it say?"))
    before = [await talk.texts(), await talk.ask("get_state"), (await talk.ask("session.history"))["messages"]]
    process.restart(number)
    for seq in (0, 3, len(events) - 1, len(events)):
        late, frames = await replayed(process, talk, seq)
        assert late.snapshot["mode"] == "resumed"
        assert frames == events[seq:]
    assert late.epoch != talk.epoch  # a cursor names the life of the daemon in which it was read
    assert late.snapshot["session"]["name"] == "sea"
    assert [await late.texts(), await late.ask("get_state"), (await late.ask("session.history"))["messages"]] == before
    await late.ask("session.configure", secrets={"api_key": "sk-scripted-key"})
    again = await late.run("again")
    assert again[-1]["type"] == "done"
    assert min(event["seq"] for event in committed(again)) > len(events)
    assert "Be brief." in str(server.requests[-1].body)
    assert "walrus" in str(server.requests[-1].messages)


MOMENTS = {
    "before the headers": ScriptedReply([Hang()]),
    "in the text": ScriptedReply([TextPart(["Once ", "upon"]), Hang()]),
    "in a call": ScriptedReply([TextPart(["Once "]), CallPart("write", {"path": "x", "content": "y"}), Hang()]),
    "in a tool": calls(
        CallPart("bash", {"command": "echo $$ > pid; echo started; exec cat go"}),
        CallPart("write", {"path": "x"}),
        before="So.",
    ),
}

CUT = {"before the headers": ["run"], "in the text": ["reply", "run"], "in a call": ["reply", "run"]}
CUT["in a tool"] = ["tool", "run"]

LAST_SIGN = {"before the headers": "turn_start", "in the text": "text_delta", "in a call": "tool_use_args"}


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_run_that_was_killed_is_repaired_and_its_queue_is_held(process, model, look, moment):
    os.mkfifo(process.cwd / "go")
    server = await model(MOMENTS[moment], *[text("fine")] * 3)
    talk = await process.create("openai", server)
    await talk.ask("prompt", message="go")
    seen = await talk.until(LAST_SIGN.get(moment, "tool_progress"))
    await server.received(1)
    waiting = [(await talk.ask("prompt", message=message))["input"] for message in ("b", "c")]
    process.restart(signal.SIGKILL)
    if moment == "in a tool":
        psutil.Process(int((process.cwd / "pid").read_text())).kill()
    last = max(event["seq"] for event in committed(seen))
    late, frames = await replayed(process, talk, last)
    assert late.snapshot["session"]["state"] == "held"
    assert [item["id"] for item in late.snapshot["queue"]] == waiting
    assert late.snapshot["run"] is None
    kinds = [frame["type"] for frame in frames if frame["type"] != "queue_changed"]
    assert kinds[-2:] == ["interrupted", "done"]
    assert [frame["what"] for frame in look.only(frames, "interrupted")] == CUT[moment]
    words = [frame["content"][0]["text"] for frame in look.only(frames, "tool_result")]
    assert words == (["interrupted, outcome unknown"] if moment == "in a tool" else [])
    assert not (process.cwd / "x").exists()
    await late.ask("session.configure", secrets={"api_key": "sk-scripted-key"})
    await late.ask("prompt", message="d")
    events = [event for _ in range(3) for event in await late.until("done")]
    assert [look.words(event["content"])[0] for event in look.only(events, "user_message")] == ["b", "c", "d"]
    assert {event["stop"] for event in look.only(events, "turn_end")} == {"end_turn"}
    everything = [frame["seq"] for frame in (await replayed(process, talk, 0))[1]]
    assert everything == list(range(1, len(everything) + 1))


async def test_a_second_restart_repairs_nothing_again(process, model):
    talk = await process.create("openai", await model(ScriptedReply([Hang()])))
    await talk.ask("prompt", message="go")
    process.restart(signal.SIGKILL)
    _, first = await replayed(process, talk, 0)
    process.restart(signal.SIGKILL)
    _, second = await replayed(process, talk, 0)
    assert second == first
    assert [frame["type"] for frame in second].count("done") == 1


async def test_a_stop_ends_runs_as_an_abort_does_and_holds_what_waits(process, model, look):
    os.mkfifo(process.cwd / "go")
    server = await model(calls(CallPart("bash", {"command": "echo $$ > pid; echo started; cat go"})))
    talk = await process.create("openai", server)
    await talk.ask("prompt", message="go")
    await talk.until("tool_progress")
    await talk.ask("prompt", message="b")
    child = psutil.Process(int((process.cwd / "pid").read_text()))
    assert process.daemon.end() == 0
    assert not child.is_running()
    seen = [frame for frame in await talk.client.rest() if frame["type"] != "response"]
    assert [event["stop"] for event in look.only(seen, "turn_end")][-1] == "aborted"
    assert look.kinds(seen)[-2:] == ["done", "queue_changed"]
    assert "Traceback" not in process.daemon.log + process.daemon.stderr
    process.daemon.start()
    late = await process.follow(talk.id)
    assert [item["text"] for item in late.snapshot["queue"]] == ["b"]
    assert late.snapshot["held"] is True


async def test_an_abort_right_behind_its_prompt_counts_also_when_the_session_must_be_read_first(process, model, look):
    server = await model(text("hi"), ScriptedReply([Hang()]))
    talk = await process.create("openai", server)
    await talk.run()
    process.restart(signal.SIGTERM)
    client = await process.connect()
    await client.ask("session.configure", session=talk.id, secrets={"api_key": "sk-scripted-key"})
    late = await process.follow(talk.id)
    for number, lines in enumerate((("prompt", "abort"), ("clear", "prompt", "abort"))):
        requests = [{"type": line, "session": talk.id, "message": "go"} for line in lines]
        late.client.write(b"".join(json.dumps(request).encode() + b"\n" for request in requests))
        events = await late.until("done")
        assert look.only(events, "turn_end")[-1]["stop"] == "aborted", number


async def test_an_abort_right_behind_its_prompt_counts_also_when_the_session_must_be_repaired_first(process, model):
    server = await model(*[ScriptedReply([Hang()])] * 2)
    talk = await process.create("ollama", None, base_url=server.openai_url, model="m", secrets=None)
    await talk.ask("prompt", message="go")
    process.restart(signal.SIGKILL)
    client = await process.connect()
    requests = [{"type": command, "session": talk.id, "message": "again"} for command in ("prompt", "abort")]
    client.write(b"".join(json.dumps(request).encode() + b"\n" for request in requests))
    assert [(await client.frame())["command"] for _ in requests] == ["abort", "prompt"]
    late = await process.follow(talk.id, after={"epoch": talk.epoch, "seq": 0})
    while not any(frame.get("stop") == "aborted" for frame in late.client.seen):
        await late.client.event()


async def test_every_prompt_that_was_answered_survives_a_kill_the_next_moment(process, model, look):
    server = await model(*[ScriptedReply([Hang()])] * 5)
    client = await process.connect()
    talks = [await process.create("openai", server, client=client) for _ in range(5)]
    for talk in talks:
        talk.send("prompt", message="first")
        talk.send("prompt", message="second")
    answers = 0
    while answers < 10:
        frame = await client.frame()
        answers += frame.get("command") == "prompt"
    process.daemon.end(signal.SIGKILL)
    process.daemon.start()
    for talk in talks:
        late = await process.follow(talk.id)
        said = [look.words(message["content"])[0] for message in late.snapshot["messages"]]
        assert said + [item["text"] for item in late.snapshot["queue"]] == ["first", "second"]


async def test_a_prompt_that_is_sent_again_after_a_kill_does_not_run_again(process, model):
    server = await model(text("once"), text("twice"))
    talk = await process.create("anthropic", server)
    first = await talk.ask("prompt", message="go", request_id="q-1")
    await talk.until("done")
    process.restart(signal.SIGKILL)
    late = await process.follow(talk.id)
    assert (await late.ask("prompt", message="go", request_id="q-1"))["input"] == first["input"]
    assert len(server.requests) == 1
    refused = await late.client.refused("prompt", session=talk.id, message="other", request_id="q-1")
    assert refused == "duplicate_key"


async def test_a_full_disk_costs_only_what_it_must_and_heals_by_itself(process, model, look):
    """The file size limit of the process stands for the disk's end."""
    server = await model(*[text("fine")] * 4)
    talk = await process.create("openai", server)
    await talk.run("before")
    _, hard = psutil.Process(process.daemon.pid).rlimit(psutil.RLIMIT_FSIZE)
    psutil.Process(process.daemon.pid).rlimit(psutil.RLIMIT_FSIZE, (1, hard))
    assert await talk.refused("prompt", message="lost") == "storage_blocked"
    assert (await talk.client.ask("daemon.status"))["state"] == "running"
    assert (await talk.client.ask("ping")) == {"pong": True}
    psutil.Process(process.daemon.pid).rlimit(psutil.RLIMIT_FSIZE, (hard, hard))
    assert len(server.requests) == 1
    await talk.ask("session.configure", secrets={"api_key": "sk-scripted-key"})
    events = await talk.run("after")
    assert look.words(look.only(events, "user_message")[0]["content"]) == ["after"]
    assert [said for role, said in await talk.texts() if role == "user"] == [["before"], ["after"]]
