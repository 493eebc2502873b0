"""An abort at any moment ends the run at once, exactly once, and leaves a session that goes on."""

import asyncio
import json
import os
import socket

import psutil
import pytest

from zotd.testing.script import CallPart, Gate, Hang, Refusal, ScriptedReply, TextPart, calls, text

SOON = {"retry-after": "0.01"}


async def aborted(talk, look):
    """The end of an aborted run: turn_end, one done, and no other behind it."""
    events = await talk.until("done")
    assert look.kinds(events)[-2:] == ["turn_end", "done"]
    assert look.only(events, "turn_end")[-1]["stop"] == "aborted"
    return events


async def goes_on(talk, look):
    """The next prompt works, its history is legal (the scripted model would refuse it), and nothing comes twice."""
    events = await talk.run("go on")
    assert look.kinds(events) == [
        *("user_message", "turn_start", "assistant_start", "text_delta", "usage"),
        *("assistant_message", "turn_end", "done"),
    ]
    assert await talk.state() == "idle"


async def test_right_behind_its_prompt_in_the_same_write(house, model, vendor, look):
    server = await model(lambda request: text("fine") if "go on" in str(request.messages) else ScriptedReply([Hang()]))
    talk = await house.create(vendor, server)
    lines = [{"type": "prompt", "id": "p", "message": "go"}, {"type": "abort", "id": "a"}]
    talk.client.write(b"".join(json.dumps(line | {"session": talk.id}).encode() + b"\n" for line in lines))
    events = await aborted(talk, look)
    assert look.kinds(events) == ["user_message", "turn_start", "turn_end", "done"]
    await goes_on(talk, look)


async def test_before_the_vendors_headers(house, model, vendor, look):
    server = await model(ScriptedReply([Hang()]), text("fine"))
    talk = await house.create(vendor, server)
    await talk.ask("prompt", message="go")
    await server.received(1)
    talk.send("abort")
    assert look.kinds(await aborted(talk, look)) == ["user_message", "turn_start", "turn_end", "done"]
    await goes_on(talk, look)


async def test_in_the_middle_of_the_text_keeps_what_came(house, model, vendor, look):
    server = await model(ScriptedReply([TextPart(["Once ", "upon"]), Hang()]), text("fine"))
    talk = await house.create(vendor, server)
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    talk.send("abort")
    events = await aborted(talk, look)
    assert look.only(events, "assistant_message")[0]["content"][0]["text"].startswith("Once ")
    await goes_on(talk, look)


async def test_in_the_middle_of_a_call_drops_the_call(house, model, vendor, look):
    server = await model(
        ScriptedReply([TextPart(["I write."]), CallPart("write", {"path": "x", "content": "y"}), Hang()]), text("fine")
    )
    talk = await house.create(vendor, server)
    await talk.ask("prompt", message="go")
    await talk.until("tool_use_args")
    talk.send("abort")
    events = await aborted(talk, look)
    assert not look.only(events, "tool_call")
    assert not (house.cwd / "x").exists()
    await goes_on(talk, look)


async def test_inside_a_tool_ends_its_whole_process_group(house, model, vendor, look):
    os.mkfifo(house.cwd / "go")
    command = "sleep 1000 & echo $! > pid; echo started; cat go"
    server = await model(
        calls(CallPart("bash", {"command": command}), CallPart("write", {"path": "x", "content": "y"})), text("fine")
    )
    talk = await house.create(vendor, server)
    await talk.ask("prompt", message="go")
    await talk.until("tool_progress")
    background = psutil.Process(int((house.cwd / "pid").read_text()))
    talk.send("abort")
    events = await aborted(talk, look)
    found = {result["name"]: result for result in look.only(events, "tool_result")}
    assert found["bash"]["is_error"]
    assert "aborted" in found["bash"]["content"][0]["text"]
    assert found["write"]["is_error"]
    assert "not run" in found["write"]["content"][0]["text"]
    assert not (house.cwd / "x").exists()
    gone, _ = psutil.wait_procs([background], timeout=30)
    assert gone
    await goes_on(talk, look)


async def test_while_it_waits_to_try_again(house, model, vendor, look):
    server = await model(Refusal(429, headers={"retry-after": "20"}), text("fine"))
    talk = await house.create(vendor, server)
    await talk.ask("prompt", message="go")
    await talk.until("retry")
    talk.send("abort")
    await aborted(talk, look)
    await goes_on(talk, look)


async def test_while_the_client_does_not_read(house, model, vendor, look):
    """More waits for it than its pipe holds, less than it is cut for; another client sees that its abort counts."""
    server = await model(ScriptedReply([TextPart(["x" * 10_000] * 120), Hang()], joined=True), text("fine"))
    talk = await house.create(vendor, server)
    with socket.socket(socket.AF_UNIX) as stalled:
        stalled.connect(house.place.socket)
        for line in ({"type": "attach"}, {"type": "prompt", "message": "go"}):
            stalled.sendall(json.dumps(line | {"session": talk.id}).encode() + b"\n")
        size = 0
        while size < 1_200_000:
            size += len((await talk.until("text_delta"))[-1]["delta"])
        stalled.sendall(json.dumps({"type": "abort", "session": talk.id}).encode() + b"\n")
        await aborted(talk, look)
        await goes_on(talk, look)


async def test_twice_and_when_nothing_runs_changes_nothing(house, model, vendor, look):
    server = await model(lambda request: text("fine") if "go on" in str(request.messages) else ScriptedReply([Hang()]))
    talk = await house.create(vendor, server)
    await talk.ask("abort")
    await talk.ask("prompt", message="go")
    for _ in range(3):
        talk.send("abort")
    await aborted(talk, look)
    await talk.ask("abort")
    await goes_on(talk, look)


@pytest.mark.parametrize("step", range(20))
async def test_two_clients_abort_at_the_very_end_of_a_run(house, model, look, step):
    """In either order there is one end, and the abort does not affect the next prompt."""
    gate = asyncio.Event()
    server = await model(ScriptedReply([TextPart(["a", "b"]), Gate(gate)]), text("fine"), text("fine"))
    talk = await house.create("openai", server)
    second = await house.follow(talk.id)
    await talk.ask("prompt", message="go")
    events = await talk.until("text_delta")
    await talk.ask("prompt", message="waits")
    gate.set()
    for _ in range(step):
        await asyncio.sleep(0)  # moves the aborts through the last moments of the run, one turn of the loop at a time
    talk.send("abort")
    second.send("abort")
    await talk.client.ask("ping")
    await second.client.ask("ping")
    talk.send("prompt", message="go on")  # lets go on what the abort may have held
    for _ in range(3):
        events += await talk.until("done")
    assert [event["content"][0]["text"] for event in look.only(events, "user_message")] == ["go", "waits", "go on"]
    assert len({event["run"] for event in look.only(events, "done")}) == 3
    assert look.only(events, "turn_end")[-1]["stop"] == "end_turn"
    assert await talk.state() == "idle"
