"""Kept jobs: commands that go on when their session or the daemon ends, and that the next daemon follows again."""

import asyncio
import json
import os
import signal

import pytest

from tests.e2e.background import PATIENCE_S, fifo, is_gone, job, output, pid_from, plain, stop, told, wait, write
from tests.e2e.family import OPENING
from tests.needs import needs
from zotd.testing.script import CallPart, calls, text

WAITS = "echo before; echo $$ > started; cat go; echo after; exit 3"

STUBBORN = "trap '' TERM; (trap '' TERM; exec setsid sh -c 'echo $$ > left; exec sleep 600') & echo $$ > started; while :; do sleep 600; done"
"""Ignores signals, and has a process that leaves the group."""


def kept(command=WAITS, **args):
    return job(command, keep=True, **args)


async def opened(process, model, *replies):
    server = await model(*replies)
    return server, await process.create("ollama", None, **OPENING, base_url=server.openai_url)


async def begun(process, talk, *names):
    """The processes of a job that has begun, as descriptors; each writes its pid to the pipe of this name."""
    pipes = [fifo(process, name) for name in names]
    await talk.ask("prompt", message="go")
    found = [await pid_from(pipe) for pipe in pipes]
    await talk.until("done")
    return found


async def restart(process, number=signal.SIGTERM):
    await asyncio.to_thread(process.restart, number)


def state_file(process):
    (found,) = process.place.home.rglob("j1.state")
    return found


async def supervisor(process):
    """The pid of the supervisor, whose command runs."""
    found = await asyncio.to_thread(state_file(process).read_bytes)
    return json.loads(found)["supervisor"]["pid"]


async def ended_job(talk):
    """The job as soon as it does not run any more."""
    async with asyncio.timeout(PATIENCE_S):
        while (found := (await talk.ask("session.jobs"))["jobs"][0])["state"] == "running":
            pass
    return found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_it_goes_on_without_a_daemon_and_the_next_one_follows_it(process, model, look, results, number):
    server, talk = await opened(process, model, calls(kept()), text("ok"), calls(wait()), text("It is over."))
    go = fifo(process, "go")
    (command,) = await begun(process, talk, "started")
    await restart(process, number)
    talk = await process.follow(talk.id)
    (found,) = talk.snapshot["jobs"]
    assert (found["state"], found["kept"]) == ("running", True)
    await talk.ask("prompt", message="wait for it")
    await server.received(3)
    await write(go, "walrus\n")
    assert await is_gone(command)
    events = await talk.until("done")
    (over,) = [event["job"] for event in look.only(events, "job")]
    assert (over["state"], over["exit"], over["output_bytes"]) == ("ended", 3, len("before\nwalrus\nafter\n"))
    (*_, waited) = plain(results(server.requests[3]))
    assert waited.startswith("before\nwalrus\nafter\n[j1 ")


async def test_one_that_ends_while_no_daemon_runs_is_reported_with_its_exit_code_and_output(process, model, results):
    server, talk = await opened(process, model, calls(kept()), text("ok"), calls(output()), text("I see."))
    go = fifo(process, "go")
    (command,) = await begun(process, talk, "started")
    watched = os.pidfd_open(await supervisor(process))
    await asyncio.to_thread(process.daemon.end)
    await write(go)
    assert await is_gone(command)
    assert await is_gone(watched)
    await asyncio.to_thread(process.daemon.start)
    talk = await process.follow(talk.id)
    await ended_job(talk)
    await talk.run("and?")
    (said,) = told(server.requests[2])
    assert "has ended: exit 3" in said
    (*_, read) = plain(results(server.requests[3]))
    assert read.startswith("before\ngo\nafter\n[j1 ")


async def test_it_outlives_its_session_and_can_be_stopped_in_it_later(process, model):
    _, talk = await opened(process, model, calls(kept(STUBBORN)), text("ok"))
    processes = await begun(process, talk, "started", "left")
    client = await process.connect(role="admin")
    await talk.ask("detach")
    await client.ask("session.close", session=talk.id)
    assert (await client.ask("session.list"))["sessions"][0]["jobs"] == 1
    (found,) = (await client.ask("session.jobs", session=talk.id))["jobs"]
    assert found["state"] == "running"
    stopped = await client.ask("session.job_stop", session=talk.id, job="j1")
    assert (stopped["state"], stopped["reason"].split()[0]) == ("stopped", "stopped")
    assert [await is_gone(one) for one in processes] == [True, True]


async def test_it_ends_with_the_deletion_of_its_session(process, model):
    _, talk = await opened(process, model, calls(kept(STUBBORN)), text("ok"))
    processes = await begun(process, talk, "started", "left")
    client = await process.connect(role="admin")
    await client.ask("session.delete", session=talk.id)
    assert [await is_gone(one) for one in processes] == [True, True]


@pytest.mark.parametrize("is_down", [False, True])
async def test_if_its_supervisor_is_killed_all_of_it_ends_and_the_outcome_is_unknown(process, model, is_down):
    server, talk = await opened(process, model, calls(kept(STUBBORN)), text("ok"), text("I see."))
    processes = await begun(process, talk, "started", "left")
    pid = await supervisor(process)
    if is_down:
        await asyncio.to_thread(process.daemon.end)
    os.kill(pid, signal.SIGKILL)
    if is_down:
        await asyncio.to_thread(process.daemon.start)
        talk = await process.follow(talk.id)
    assert (await ended_job(talk))["state"] == "interrupted"
    assert [await is_gone(one) for one in processes] == [True, True]
    await talk.run("and?")
    (said,) = told(server.requests[2])
    assert "was interrupted, outcome unknown" in said


async def test_other_jobs_still_end_with_the_daemon(process, model):
    _, talk = await opened(
        process, model, calls(job("echo $$ > other; exec sleep 600")), calls(kept(WAITS)), text("ok")
    )
    fifo(process, "go")
    other, command = await begun(process, talk, "other", "started")
    await restart(process)
    assert await is_gone(other)
    talk = await process.follow(talk.id)
    assert [job["state"] for job in talk.snapshot["jobs"]] == ["stopped", "running"]
    await write(process.cwd / "go")
    assert await is_gone(command)


async def test_a_command_that_cannot_be_started_is_reported(process, model):
    shell = process.cwd / "bash"
    shell.write_text("#!/nowhere/at/all\n")
    shell.chmod(0o755)
    server = await model(calls(kept("true")), text("ok"), text("I see."))
    env = {"PATH": str(process.cwd), "HOME": process.place.env["HOME"]}
    talk = await process.create("ollama", None, **OPENING | {"env": env}, base_url=server.openai_url)
    await talk.run()
    found = await ended_job(talk)
    assert (found["state"], found["exit"]) == ("ended", 126)
    assert "No such file or directory" in found["reason"]
    await talk.run("and?")
    assert "could not be started: " in told(server.requests[2])[0]


@pytest.mark.parametrize("variables", [{"ZOT_JOBS_OUTPUT_MB": "1"}])
async def test_a_long_output_is_bounded_and_read_on_by_the_next_daemon(process, model, results):
    flood = "for i in 1 2 3; do head -c 1000000 /dev/zero | tr '\\0' $i; done; echo; echo $$ > started; cat go"
    server, talk = await opened(process, model, calls(kept(flood)), text("ok"), calls(wait()), text("It is over."))
    go = fifo(process, "go")
    (command,) = await begun(process, talk, "started")
    await restart(process, signal.SIGKILL)
    talk = await process.follow(talk.id)
    await talk.ask("prompt", message="wait for it")
    await server.received(3)
    await write(go, "walrus\n")
    assert await is_gone(command)
    await talk.until("done")
    (*_, waited) = plain(results(server.requests[3]))
    assert "walrus\n[j1 " in waited
    found = (await talk.ask("session.jobs"))["jobs"][0]
    assert found["output_bytes"] == 3_000_000 + len("\nwalrus\n")
    kept_bytes = await asyncio.to_thread(os.path.getsize, found["output"])
    assert kept_bytes <= 1024 * 1024


async def test_a_link_in_the_place_of_its_output_is_not_followed(process, model):
    victim = process.cwd / "victim"
    victim.write_text("mine\n")
    attack = f"echo one; f=$(find {process.place.home} -name j1.txt); rm -f $f; ln -s {victim} $f; echo $$ > started; cat go; echo two"
    _, talk = await opened(process, model, calls(kept(attack)), text("ok"))
    go = fifo(process, "go")
    (command,) = await begun(process, talk, "started")
    await write(go)
    assert await is_gone(command)
    assert (await ended_job(talk))["state"] == "ended"
    assert victim.read_text() == "mine\n"


@pytest.mark.parametrize("variables", [{"ZOT_JOBS_KEPT_AT_ONCE": "1"}])
async def test_there_are_no_more_kept_jobs_at_once_than_the_setting_says(process, model, results):
    replies = [calls(kept("cat go")), calls(kept("true")), calls(stop()), calls(kept("true")), text("ok")]
    server, talk = await opened(process, model, *replies)
    fifo(process, "go")
    await talk.run()
    first, refused, _, again = plain(results(server.requests[4]))
    assert first.startswith("j1 (cat go) runs in the background.")
    assert "it goes on when the session ends or zot is stopped" in first
    assert refused == (
        "Error: as many kept jobs run as there may be (j1): stop one first (the limit is jobs.kept_at_once in config.toml)"
    )
    assert again.startswith("j2 ")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"keep": True}, "only a job can be kept: set background as well"),
        ({"keep": True, "background": True, "timeout": 3}, "a job has no timeout"),
    ],
)
async def test_an_impossible_call_gets_one_sentence(house, model, results, args, said):
    server = await model(calls(CallPart("bash", {"command": "true", **args})), text("ok"))
    talk = await house.create("openai", server)
    await talk.run()
    assert plain(results(server.requests[1]))[0].startswith(f"Error: {said}")


async def test_a_session_that_is_not_stored_has_no_kept_jobs(house, model, results):
    server = await model(calls(kept("true")), text("ok"))
    talk = await house.create("openai", server, ephemeral=True)
    await talk.run()
    (said,) = plain(results(server.requests[1]))
    assert said == "Error: no job can be kept in a session that is not stored: leave keep out"


async def test_a_command_in_a_jail_cannot_be_kept(house, model, results):
    needs("bwrap")
    server = await model(calls(kept("true")), text("ok"))
    talk = await house.create("openai", server, mode="workspace")
    await talk.run()
    (said,) = plain(results(server.requests[1]))
    assert said.startswith(
        "Error: a command in a jail cannot be kept, because its jail ends with the session: leave keep out"
    )
