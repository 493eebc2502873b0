"""Jobs: commands that run in the background, what the model and people are told of them, and that nothing of them is left."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from tests.e2e.background import (
    PATIENCE_S,
    STUBBORN,
    begun_stubborn,
    ended,
    fifo,
    is_gone,
    job,
    output,
    pid_from,
    plain,
    stop,
    told,
    wait,
    write,
)
from tests.e2e.family import OPENING, Cast, tasks
from zotd.testing.script import CallPart, Gate, ScriptedReply, TextPart, calls, text


async def test_a_job_runs_beside_the_conversation_and_its_output_is_read_on(house, vendor, model, look, results):
    go = fifo(house, "go")
    server = await model(
        calls(job("echo one; echo ready to serve; cat go; echo two")),
        calls(wait(pattern="ready*serve")),
        calls(output()),
        text("It serves."),
        calls(wait()),
        text("It is over."),
    )
    talk = await house.create(vendor, server)
    events = await talk.run()
    (begun,) = look.only(events, "job")
    assert (begun["job"]["id"], begun["job"]["state"]) == ("j1", "running")
    first, waited, nothing = plain(results(server.requests[3]))
    assert first.startswith("j1 (echo one; echo ready to serve; cat go; echo two) runs in the background.")
    assert waited.startswith("[this line fits: ready to serve]\none\nready to serve\n[j1 ")
    assert waited.endswith("is running]")
    assert nothing.startswith("[nothing new]\n[j1 ")
    assert await talk.state() == "idle"
    await talk.ask("prompt", message="and then?")
    await server.received(5)
    await write(go, "walrus\n")
    events = await talk.until("done")
    (over,) = [event["job"] for event in look.only(events, "job")]
    assert (over["state"], over["exit"], over["output_bytes"]) == (
        "ended",
        0,
        len("one\nready to serve\nwalrus\ntwo\n"),
    )
    (*_, last) = plain(results(server.requests[5]))
    assert last.startswith("walrus\ntwo\n[j1 ")
    assert "has ended: exit 0" in last


async def test_the_model_is_told_in_a_run_that_goes_on(house, vendor, model):
    go, gate = fifo(house, "go"), asyncio.Event()
    server = await model(
        calls(job("cat go; exit 3")), ScriptedReply([Gate(gate), CallPart("read", {"path": "a"})]), text("I see.")
    )
    talk = await house.create(vendor, server)
    await talk.ask("prompt", message="go")
    await server.received(2)
    await write(go)
    assert (await ended(talk))["exit"] == 3
    gate.set()
    await talk.until("done")
    assert [len(told(request)) for request in server.requests] == [0, 0, 1]
    assert told(server.requests[2])[0].startswith("j1 (cat go; exit 3) has ended: exit 3, after ")


async def test_an_end_between_two_runs_is_told_with_the_next_prompt_and_only_once(house, vendor, model):
    go = fifo(house, "go")
    server = await model(calls(job("cat go")), text("ok"), text("I see."), text("again"))
    talk = await house.create(vendor, server)
    await talk.run()
    await write(go)
    await ended(talk)
    await talk.run("and?")
    await talk.run("and now?")
    assert [len(told(request)) for request in server.requests] == [0, 0, 1, 1]


async def test_a_job_survives_its_client_and_is_in_the_next_ones_snapshot(house, model):
    go = fifo(house, "go")
    talk = await house.create("openai", await model(calls(job("echo walrus; cat go")), text("ok")))
    await talk.run()
    talk.client.cut()
    late = await house.follow(talk.id)
    (found,) = late.snapshot["jobs"]
    assert (found["id"], found["command"], found["state"]) == ("j1", "echo walrus; cat go", "running")
    await write(go)
    over = await ended(late)
    assert (over["state"], over["exit"]) == ("ended", 0)


async def test_a_job_that_ignores_signals_and_leaves_its_group_is_ended_whole(house, model, results):
    server = await model(calls(job(STUBBORN)), text("ok"), calls(stop()), calls(output()), text("gone"))
    talk = await house.create("openai", server)
    processes = await begun_stubborn(house, talk)
    await talk.run("stop it")
    assert [await is_gone(one) for one in processes] == [True, True]
    stopped, after = results(server.requests[4])[1:]
    assert "was stopped by the model: exit 137" in stopped
    assert "was stopped by the model: exit 137" in after
    assert told(server.requests[4]) == []


@pytest.mark.parametrize("close", ["session.close", "session.delete"])
async def test_a_job_ends_with_its_session(house, model, close):
    talk = await house.create("openai", await model(calls(job(STUBBORN)), text("ok")))
    processes = await begun_stubborn(house, talk)
    other = await house.connect(role="admin")
    await other.ask(close, session=talk.id)
    assert [await is_gone(one) for one in processes] == [True, True]


async def test_what_a_job_leaves_behind_ends_with_it(house, model):
    left = fifo(house, "left")
    command = "setsid sh -c 'echo $$ > left; exec sleep 600' & cat go"
    go = fifo(house, "go")
    talk = await house.create("openai", await model(calls(job(command)), text("ok")))
    await talk.run()
    process = await pid_from(left)
    await write(go)
    assert (await ended(talk))["exit"] == 0
    assert await is_gone(process)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_after_a_restart_the_model_is_told_what_became_of_a_job_and_nothing_is_left(process, model, number):
    server = await model(calls(job(STUBBORN)), text("ok"), text("I see."))
    talk = await process.create("ollama", None, **OPENING, base_url=server.openai_url)
    processes = await begun_stubborn(process, talk)
    await asyncio.to_thread(process.restart, number)
    assert [await is_gone(one) for one in processes] == [True, True]
    talk = await process.follow(talk.id)
    (found,) = talk.snapshot["jobs"]
    assert found["state"] == ("interrupted" if number == signal.SIGKILL else "stopped")
    assert await talk.state() == "idle"
    await talk.run("and?")
    (said,) = told(server.requests[2])
    assert (
        "was interrupted, outcome unknown" if number == signal.SIGKILL else "was ended because zot has stopped"
    ) in said


async def test_after_a_kill_no_job_counts_as_running_although_nobody_looks_into_its_session(process, model):
    server = await model(calls(job("exec sleep 600")), text("ok"))
    talk = await process.create("ollama", None, **OPENING, base_url=server.openai_url)
    await talk.run()
    await asyncio.to_thread(process.restart, signal.SIGKILL)
    client = await process.connect()
    async with asyncio.timeout(PATIENCE_S):
        while (await client.ask("session.list"))["sessions"][0].get("jobs", 0):
            pass


@pytest.mark.parametrize("variables", [{"ZOT_JOBS_OUTPUT_MB": "1"}])
async def test_a_flood_is_kept_in_a_bounded_file(house, model, results):
    flood = "head -c 50000000 /dev/zero | tr '\\0' x | fold -w 99; echo the last line"
    server = await model(calls(job(flood)), calls(wait()), text("ok"))
    talk = await house.create("openai", server)
    events = await talk.run()
    over = next(event["job"] for event in events if event["type"] == "job" and event["job"]["state"] == "ended")
    assert over["output_bytes"] > 50_000_000
    kept = len(await asyncio.to_thread(Path(over["output"]).read_bytes))
    assert 500_000 < kept < 4_000_000
    said = results(server.requests[2])[1]
    assert "bytes before this are not kept" in said
    assert "the last line\n[j1 " in said
    assert len(said) < 60_000


@pytest.mark.parametrize("variables", [{"ZOT_JOBS_AT_ONCE": "2"}])
async def test_there_are_no_more_jobs_at_once_than_the_setting_says(house, model, results):
    go = fifo(house, "go")
    server = await model(
        calls(job("cat go"), job("sleep 600"), job("true")), text("ok"), calls(job("true")), text("ok")
    )
    talk = await house.create("openai", server)
    await talk.run()
    assert results(server.requests[1])[2] == (
        "Error: 2 jobs run already (j1, j2): stop one first (the limit is jobs.at_once in config.toml)"
    )
    await write(go)
    await ended(talk)
    await talk.run("again")
    assert results(server.requests[3])[3].startswith("j3 (true) runs")


@pytest.mark.parametrize("variables", [{"ZOT_JOBS_AT_ONCE": "0"}])
async def test_without_jobs_the_model_has_no_tools_for_them(house, model, results):
    server = await model(calls(job("true")), text("ok"))
    talk = await house.create("openai", server)
    await talk.run()
    names = [tool["function"]["name"] for tool in server.requests[0].body["tools"]]
    assert [name for name in names if name.startswith("job_")] == []
    assert results(server.requests[1]) == ["Error: there can be no jobs here: run the command without background"]


async def test_a_job_is_judged_like_any_command(house, model, results):
    server = await model(calls(job("touch made")), text("no?"))
    talk = await house.create("openai", server, mode="read-only")
    await talk.run()
    assert results(server.requests[1])[0].startswith("Error: bash is denied because this session is read-only")
    assert not (house.cwd / "made").exists()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (output("j7"), 'there is no job "j7"; no job was begun'),
        (wait(pattern="a\\d"), 'there is no job "j1"; no job was begun'),
        (job("true", timeout=3), "a job has no timeout: leave it out, and end the job with job_stop"),
        (job("true\0"), "the command or the environment contains a NUL; leave it out"),
    ],
)
async def test_an_impossible_call_gets_one_sentence(house, model, results, call, said):
    server = await model(calls(call), text("ok"))
    talk = await house.create("openai", server)
    await talk.run()
    assert results(server.requests[1]) == [f"Error: {said}"]


async def test_a_wait_ends_after_its_time(house, model, results):
    server = await model(calls(job("echo one; exec sleep 600")), calls(wait(pattern="two", seconds=0.01)), text("ok"))
    talk = await house.create("openai", server)
    await talk.run()
    assert "[no line fits yet, after 0.01 s]\n" in results(server.requests[2])[1]


async def test_an_abort_of_the_run_leaves_the_job_alone(house, model):
    go = fifo(house, "go")
    server = await model(calls(job("cat go")), calls(wait()), text("ok"))
    talk = await house.create("openai", server)
    await talk.ask("prompt", message="go")
    await server.received(2)
    await talk.until("tool_start")
    await talk.ask("abort")
    await talk.until("done")
    await write(go)
    assert (await ended(talk))["state"] == "ended"


async def test_a_job_of_a_subagent_ends_with_its_task(house, model):
    main, left = fifo(house, "main"), fifo(house, "left")
    begun = asyncio.Event()
    answer = ScriptedReply([Gate(begun), TextPart(["It works."])])
    server = await model(Cast(go=[tasks("a"), text("done")], a=[calls(job(STUBBORN)), answer]))
    talk = await house.create("openai", server)
    await talk.ask("prompt", message="go")
    processes = [await pid_from(left), await pid_from(main)]
    begun.set()
    await talk.until("done")
    assert [await is_gone(one) for one in processes] == [True, True]


async def test_a_job_ends_with_the_last_client_of_an_ephemeral_session(house, model):
    talk = await house.create("openai", await model(calls(job(STUBBORN)), text("ok")), ephemeral=True)
    processes = await begun_stubborn(house, talk)
    talk.client.cut()
    assert [await is_gone(one) for one in processes] == [True, True]


async def test_a_person_stops_a_job_and_the_model_is_told(house, model):
    server = await model(calls(job(STUBBORN)), text("ok"), text("I see."))
    talk = await house.create("openai", server)
    processes = await begun_stubborn(house, talk)
    assert await talk.refused("session.job_stop", job="j2") == "not_found"
    stopped = await talk.ask("session.job_stop", job="j1")
    assert (stopped["state"], stopped["exit"]) == ("stopped", 137)
    assert [await is_gone(one) for one in processes] == [True, True]
    assert (await talk.ask("session.jobs"))["jobs"] == [stopped]
    assert await talk.ask("session.job_stop", job="j1") == stopped
    await talk.run("and?")
    (said,) = told(server.requests[2])
    assert f"was {stopped['reason']}: exit 137" in said


async def test_people_see_that_a_job_is_to_run_in_the_background_when_they_are_asked(house, model):
    server = await model(calls(job("echo walrus")), text("ok"))
    client = await house.connect(can_approve=True)
    talk = await house.create("openai", server, client, mode="ask")
    await talk.ask("prompt", message="go")
    asked = (await talk.until("approval_requested"))[-1]
    assert asked["preview"].startswith("echo walrus\n(")
    assert '"background": true' in asked["preview"]
    decision = {"approval": asked["approval"], "args_digest": asked["args_digest"], "decision": "allow"}
    await talk.ask("approve", **decision)
    assert (await ended(talk))["exit"] == 0


SERVER = """import socket
server = socket.create_server(("127.0.0.1", 0))
print("serving on", server.getsockname()[1], flush=True)
server.accept()
"""


async def test_the_ports_on_which_a_job_listens_are_shown(house, model, results):
    (house.cwd / "serve.py").write_text(SERVER)
    command = f"exec {sys.executable} serve.py"
    server = await model(calls(job(command)), calls(wait(pattern="serving on")), text("It serves."))
    talk = await house.create("openai", server)
    events = await talk.run()
    told = results(server.requests[2])[1]
    port = int(told.split("serving on ")[1].split("\n")[0].rstrip("]"))
    assert f"is running, and listens on port {port}]" in told
    (shown,) = [event for event in events if event["type"] == "job_ports"] or [(await talk.until("job_ports"))[-1]]
    assert (shown["job"], shown["ports"]) == ("j1", [port])
    (found,) = (await talk.ask("session.jobs"))["jobs"]
    assert found["ports"] == [port]
    assert (await talk.client.ask("session.get", session=talk.id))["jobs"] == 1


# --- a run at the end of a job ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("variables", [{"ZOT_JOBS_WAKE": "true"}])
async def test_where_the_settings_allow_it_the_end_of_a_job_begins_a_run(house, vendor, model):
    go = fifo(house, "go")
    server = await model(calls(job("cat go; exit 3")), text("ok"), text("It has failed."))
    talk = await house.create(vendor, server)
    await talk.run()
    await write(go)
    events = await talk.until("done")
    assert [event["sender"] for event in events if event["type"] == "user_message"] == ["job"]
    assert len(told(server.requests[2])) == 1
    assert await talk.state() == "idle"


@pytest.mark.parametrize("variables", [{"ZOT_JOBS_WAKE": "true"}])
async def test_an_end_that_the_run_was_not_told_of_begins_another_one(house, model):
    go, gate = fifo(house, "go"), asyncio.Event()
    server = await model(calls(job("cat go")), ScriptedReply([Gate(gate), TextPart(["ok"])]), text("I see."))
    talk = await house.create("openai", server)
    await talk.ask("prompt", message="go")
    await server.received(2)
    await write(go)
    await ended(talk)
    gate.set()
    await talk.until("done")
    await talk.until("done")
    assert [len(told(request)) for request in server.requests] == [0, 0, 1]


@pytest.mark.parametrize("variables", [{"ZOT_JOBS_WAKE": "true"}])
async def test_after_a_restart_or_what_the_model_has_stopped_itself_nothing_begins_by_itself(process, model):
    server = await model(
        calls(job("exec sleep 600")), calls(stop()), calls(job("exec sleep 600")), text("ok"), text("hi")
    )
    talk = await process.create("ollama", None, **OPENING, base_url=server.openai_url)
    await talk.run()
    await asyncio.to_thread(process.restart, signal.SIGKILL)
    talk = await process.follow(talk.id)
    assert [one["state"] for one in talk.snapshot["jobs"]] == ["stopped", "interrupted"]
    await talk.ask("session.rename", name="renamed")
    assert await talk.state() == "idle"
    await talk.run("and?")
    assert len(server.requests) == 5
    assert len(told(server.requests[4])) == 1
