"""Commands that a person runs in a session: seen by all, by the model when it is to, and never twice."""

import asyncio
import os
import signal
from contextlib import suppress

import psutil
import pytest

from tests.e2e.conftest import kinds, only
from zotd.testing.script import CallPart, Hang, ScriptedReply, TextPart, calls, text


async def shell(talk, command, **fields):
    """Run it, and everything that comes of it."""
    await talk.ask("shell", command=command, **fields)
    return await talk.until("done")


def output(shown):
    """What the command is shown with at its end."""
    (message,) = only(shown, "user_message")
    return message["content"][0]["text"]


async def asked(server):
    """What the model was asked, as text."""
    return str(server.requests[-1].messages)


@pytest.fixture
async def talk(house, model):
    """A session whose model answers twice."""
    return await house.create("openai", await model(text("hi"), text("again")))


# --- what everybody sees --------------------------------------------------------------------------------------------


async def test_everybody_sees_it_start_its_output_and_its_end(house, talk):
    other = await house.follow(talk.id)
    answer = await talk.ask("shell", command="echo walrus; pwd; exit 3")
    shown = await talk.until("done")
    assert kinds(shown) == ["shell_start", "tool_progress", "user_message", "done"]
    assert kinds(await other.until("done")) == kinds(shown)
    start, message, done = (only(shown, kind)[0] for kind in ("shell_start", "user_message", "done"))
    assert (start["id"], start["command"], start["context"]) == (answer["run"], "echo walrus; pwd; exit 3", True)
    assert {one["id"] for one in only(shown, "tool_progress")} == {start["id"]}
    assert "".join(str(one["text"]) for one in only(shown, "tool_progress")) == f"walrus\n{house.cwd}\n"
    took = message["shell"].pop("took_s")
    assert message["shell"] == {"id": start["id"], "command": start["command"], "context": True, "exit": 3}
    assert output(shown) == f"$ echo walrus; pwd; exit 3\n\nwalrus\n{house.cwd}\n[exit 3]  Took {took:.1f}s"
    assert done["run"] == start["id"]
    assert await talk.state() == "idle"


async def test_a_client_that_comes_later_finds_it_in_the_history_once(house, talk):
    shown = await shell(talk, "echo walrus", context=False)
    late = await house.follow(talk.id)
    (message,) = late.snapshot["messages"]
    assert (message["role"], message["content"][0]["text"]) == ("user", output(shown))
    assert message["shell"]["context"] is False
    again = await house.follow(talk.id, after={"epoch": talk.epoch, "seq": 0})
    replayed = [frame["type"] for frame in again.client.seen if "seq" in frame]
    assert replayed == ["shell_start", "user_message", "done", "replay_complete"]


async def test_an_export_has_it(house, talk):
    await shell(talk, "echo walrus", context=False)
    found = (await talk.ask("session.export", format="markdown"))["text"]
    assert "## You, at the shell, " in found
    assert "```\n$ echo walrus\n\nwalrus\n[exit 0]" in found


async def test_one_can_go_back_to_what_it_said(house, model):
    talk = await house.create("openai", await model(text("hi")))
    (message,) = only(await shell(talk, "echo walrus"), "user_message")
    await talk.run()
    await talk.ask("session.rewind", seq=message["seq"])
    assert await talk.texts() == [("user", [message["content"][0]["text"]])]


async def test_a_client_that_comes_meanwhile_finds_it_running(house, talk):
    await talk.ask("shell", command="echo walrus; exec sleep 60")
    await talk.until("tool_progress")
    late = await house.follow(talk.id)
    assert late.snapshot["run"]["shell"]["command"] == "echo walrus; exec sleep 60"
    assert late.snapshot["session"]["state"] == "running"
    await late.ask("abort")
    assert kinds(await late.until("done")) == ["user_message", "done"]


async def test_it_runs_in_the_environment_of_the_sessions_tools(house, model):
    env = {"PATH": os.environ["PATH"], "MINE": "walrus", "OPENAI_API_KEY": "sk-a-key-of-the-client"}
    talk = await house.create("openai", await model(), env=env)
    said = output(await shell(talk, "env"))
    assert "MINE=walrus" in said
    assert "sk-a-key" not in said


# --- what the model sees --------------------------------------------------------------------------------------------


async def test_the_model_sees_it_with_the_next_prompt(house, model, vendor):
    server = await model(text("hi"), text("I see"))
    talk = await house.create(vendor, server)
    await talk.run("first")
    shown = await shell(talk, "echo walrus")
    await talk.run("what did it say?")
    said = await talk.texts()
    assert [role for role, _ in said] == ["user", "assistant", "user", "user", "assistant"]
    assert said[2] == ("user", [output(shown)])
    assert "walrus" in await asked(server)


async def test_the_model_does_not_see_text_for_the_user_only(house, model):
    server = await model(text("hi"))
    talk = await house.create("openai", server)
    await shell(talk, "echo walrus", context=False)
    await talk.run()
    assert "walrus" not in await asked(server)
    assert "walrus" not in str(await talk.texts())


async def test_it_runs_in_every_mode_because_a_person_types_it(house, model):
    talk = await house.create("openai", await model(), mode="read-only")
    assert "walrus" in output(await shell(talk, "echo walrus"))


# --- beside runs ----------------------------------------------------------------------------------------------------


async def test_while_the_model_is_at_work_it_is_refused(house, model):
    talk = await house.create("openai", await model(ScriptedReply([TextPart(["Once "]), Hang()])))
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    assert await talk.refused("shell", command="true") == "busy"
    await talk.ask("abort")
    await talk.until("done")


async def test_a_prompt_that_comes_meanwhile_waits_and_knows_its_output(house, model):
    server = await model(text("I see"))
    talk = await house.create("openai", server)
    await talk.ask("shell", command="echo walrus; exec sleep 60")
    await talk.until("tool_progress")
    answer = await talk.ask("prompt", message="what did it say?")
    assert answer["started"] is False
    assert await talk.refused("shell", command="true") == "busy"
    await talk.ask("abort")
    await talk.until("done")
    await talk.until("done")
    assert "walrus" in await asked(server)


async def test_abort_ends_it_with_all_that_it_started_and_keeps_what_it_said(house, talk):
    await talk.ask("shell", command="echo $$; sleep 60 & wait")
    (line,) = only(await talk.until("tool_progress"), "tool_progress")
    await talk.ask("abort")
    shown = await talk.until("done")
    (message,) = only(shown, "user_message")
    assert "exit" not in message["shell"]
    assert line["text"].strip() in output(shown)
    assert "[aborted, and ended with all that it had started]" in output(shown)
    assert not running_in_group(int(line["text"]))


def running_in_group(group):
    """Its processes without zombies, which only wait for init to read how they ended."""
    found = []
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


@pytest.mark.parametrize("end", ["abort", "daemon.shutdown"])
async def test_once_it_has_ended_nothing_can_cut_it_short_while_its_output_is_stored(process, model, ended, end):
    talk = await process.create("openai", await model(text("hi")))
    await talk.ask("hello", role="admin")
    os.mkfifo(process.cwd / "go")
    await talk.ask("shell", command="echo $$; read < go; head -c 200000 /dev/zero | tr '\\0' x")
    shown = await talk.until("tool_progress")
    disk = process.place.home / "out" / talk.id / f"{shown[0]['id']}.txt"
    disk.parent.mkdir(parents=True)
    os.mkfifo(disk)  # it takes 64 KiB, and the rest as soon as somebody reads
    pipe, loop = os.open(disk, os.O_RDWR), asyncio.get_running_loop()
    (process.cwd / "go").write_text("\n")
    await ended(int(shown[-1]["text"]))
    await talk.ask(end)
    loop.add_reader(pipe, os.read, pipe, 256 * 1024)
    assert (await talk.until("done"))[-1]["type"] == "done"
    loop.remove_reader(pipe)
    os.close(pipe)
    assert process.daemon.end() == 0
    assert "Traceback" not in process.daemon.log


async def test_inputs_that_are_held_stay_held(house, model):
    talk = await house.create("openai", await model(ScriptedReply([TextPart(["Once "]), Hang()]), text("never")))
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    await talk.ask("prompt", message="later")
    await talk.ask("abort")
    await talk.until("done")
    await talk.until("queue_changed")
    await shell(talk, "true", context=False)
    assert (await talk.ask("queue.list"))["held"] is True
    assert await talk.state() == "held"


@pytest.mark.parametrize("command", ["", " \n"])
async def test_an_empty_command_is_refused(talk, command):
    assert await talk.refused("shell", command=command) == "bad_request"


async def test_a_command_that_no_system_takes_is_refused(talk):
    assert await talk.refused("shell", command="true " + "é" * 65_536) == "too_large"
    assert (await shell(talk, "true " + "é" * 65_500))[-1]["type"] == "done"


async def test_what_cannot_be_started_says_so(house, model):
    talk = await house.create("openai", await model())
    house.cwd.rename(house.cwd.with_name("gone"))
    shown = await shell(talk, "true")
    assert "could not be started" in output(shown)
    assert only(shown, "user_message")[0]["shell"]["exit"] == 126


async def test_a_client_that_may_only_submit_has_no_shell(house, talk):
    await talk.ask("hello", role="submit")
    assert await talk.refused("shell", command="true") == "forbidden"


async def test_a_program_that_the_daemon_has_started_has_none(house, model):
    line = f'{{"type":"shell","session":"SESSION","command":"touch {house.cwd}/taken"}}'
    program = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
        "s.sendall(sys.argv[2].encode() + b'\\n'); print(s.recv(4096).decode())"
    )
    talk = await house.create("openai", await model())
    request = line.replace("SESSION", talk.id)
    said = output(await shell(talk, f"python3 -c \"{program}\" {house.place.socket} '{request}'"))
    assert '"code":"forbidden"' in said
    assert not (house.cwd / "taken").exists()


# --- restarts -------------------------------------------------------------------------------------------------------


async def test_one_that_a_crash_has_cut_is_shown_as_that_and_not_run_again(process, model):
    server = await model(text("I see"))
    talk = await process.create("openai", server)
    await talk.ask("shell", command="echo once >> log; echo there; exec sleep 60")
    await talk.until("tool_progress")
    process.restart(signal.SIGKILL)
    again = await process.follow(talk.id, after={"epoch": talk.epoch, "seq": 0}, env={"PATH": os.environ["PATH"]})
    frames = [frame for frame in again.client.seen if "seq" in frame]
    assert [frame["type"] for frame in frames] == ["shell_start", "user_message", "done", "replay_complete"]
    assert frames[1]["shell"]["interrupted"] is True
    assert "may have happened" in frames[1]["content"][0]["text"]
    assert await again.state() == "idle"
    assert (process.cwd / "log").read_text() == "once\n"
    assert [role for role, _ in await again.texts()] == ["user"]


async def test_inputs_that_waited_behind_one_that_a_crash_has_cut_are_held(process, model):
    server = await model(text("I see"))
    talk = await process.create("openai", server)
    await talk.ask("shell", command="echo there; exec sleep 60")
    await talk.until("tool_progress")
    await talk.ask("prompt", message="later")
    process.restart(signal.SIGKILL)
    again = await process.follow(talk.id)
    assert await again.state() == "held"
    assert [item["text"] for item in (await again.ask("queue.list"))["items"]] == ["later"]
    assert ["daemon stopped" in one for _, (one,) in await again.texts()] == [True]


async def test_one_that_is_sent_again_after_a_restart_is_only_answered(process, model):
    talk = await process.create("openai", await model())
    first = await talk.ask("shell", command="echo x >> ran", request_id="q-1")
    await talk.until("done")
    process.restart(signal.SIGKILL)
    again = await process.follow(talk.id)
    assert (await again.ask("shell", command="echo x >> ran", request_id="q-1"))["run"] == first["run"]
    assert await again.refused("shell", command="echo y >> ran", request_id="q-1") == "duplicate_key"
    await again.ask("shell", command="true")
    await again.until("done")
    assert (process.cwd / "ran").read_text() == "x\n"


async def test_what_one_has_said_is_there_after_a_restart(process, model):
    server = await model(text("I see"))
    talk = await process.create("openai", server)
    shown = await shell(talk, "echo walrus")
    await shell(talk, "echo secret", context=False)
    process.restart(signal.SIGTERM)
    again = await process.follow(talk.id)
    assert await again.texts() == [("user", [output(shown)])]
    assert [message["shell"]["context"] for message in again.snapshot["messages"]] == [True, False]


async def test_nothing_comes_between_a_call_and_its_result(process, model):
    server = await model(calls(CallPart("bash", {"command": "exec sleep 60"})), text("done"))
    talk = await process.create("openai", server, mode="ask")
    await talk.ask("hello", can_approve=True)
    await talk.ask("prompt", message="go")
    await talk.until("approval_requested")
    process.restart(signal.SIGKILL)
    again = await process.follow(talk.id)
    assert await again.refused("shell", command="true") == "conflict"
    assert "secret" in output(await shell(again, "echo secret", context=False))
    assert await again.state() == "waiting"
    assert len((await again.ask("approval.list"))["approvals"]) == 1
    process.restart(signal.SIGKILL)
    (one,) = (await (await process.connect()).ask("session.list"))["sessions"]
    assert one["state"] == "waiting"
