"""A host and real extensions: what sessions see of them."""

import asyncio
import json
import os
import stat
import sys

import psutil
import pytest

from tests.exthost.conftest import ABOUT, ENV, context, run, tell
from zotd.core import supervision
from zotd.core.life import ExtensionState
from zotd.core.ports import Replay
from zotd.exthost.host import ExtensionTimeouts
from zotd.exthost.offers import ExtensionCommand
from zotd.testing.misbehaviours import PROGRAM
from zotd.wire import ext

SHELL = """
printf '{"type":"hello","name":"hello","version":"1.0","capabilities":["commands"]}\\n'
printf '{"type":"register_command","name":"hello","description":"say hi"}\\n'
printf '{"type":"ready"}\\n'
while read -r line; do
  case "$line" in
    *command_invoked*)
      id=$(printf %s "$line" | sed 's/.*"id":"\\([^"]*\\)".*/\\1/')
      printf '{"type":"command_response","id":"%s","action":"prompt","prompt":"Greet me."}\\n' "$id" ;;
    *shutdown*) exit 0 ;;
  esac
done
"""


def state_of(host, name):
    return next(one for one in host.status() if one.manifest.name == name)


def tool_names(host):
    return [tool.spec.name for tool in host.offers.tools()]


# --- start ----------------------------------------------------------------------------------------------------


async def test_a_shell_script_is_an_extension(workshop):
    workshop.extension("hello", ["sh", "-c", SHELL])
    async with workshop.host() as host:
        assert host.offers.commands() == [ExtensionCommand("hello", "say hi", "hello")]
        name, response = await host.offers.invoke("hello", "", about=ABOUT, client=None)
        assert (name, response.action, response.prompt) == ("hello", "prompt", "Greet me.")
    assert workshop.heard.states[-1] == ("hello", "stopped", "")


async def test_hello_is_answered_with_where_everything_is(workshop):
    workshop.script("beside", "greet(); print(sys.stdin.readline(), file=sys.stderr, flush=True); serve()")
    workshop.script(
        "apart", "greet(); print(sys.stdin.readline(), file=sys.stderr, flush=True); serve()", data="separate"
    )
    async with workshop.host(provider="anthropic", model="m", features=("tap",)):
        pass

    def ack(name):
        return json.loads((workshop.home / f"logs/ext-{name}.log").read_text().splitlines()[0])

    directory = str(workshop.home / "extensions/beside")
    assert ack("beside") == {
        "type": "hello_ack",
        "protocol_version": 1,
        "zot_version": "1.2.3",
        "provider": "anthropic",
        "model": "m",
        "cwd": str(workshop.cwd),
        "extension_dir": directory,
        "data_dir": str(workshop.home / "data/beside"),
        "capabilities": [],
        "features": ["tap"],
    }
    data = workshop.home / "data/apart"
    assert ack("apart")["data_dir"] == str(data)
    assert stat.S_IMODE(data.stat().st_mode) == 0o700


async def test_it_runs_in_its_directory_in_a_group_of_its_own_with_a_given_environment(workshop):
    source = """
print(os.getcwd(), os.getpgid(0) == os.getpid(), sorted(os.environ), file=sys.stderr, flush=True)
greet(); serve()
"""
    workshop.script("one", source)
    workshop.script("two", source, env=["OPENAI_API_KEY", "MISSING"])
    withheld = {"OPENAI_API_KEY": "k", "OTHER_KEY": "k"}
    async with workshop.host(env={**ENV, "LC_CTYPE": "C.UTF-8", "SHOWN": "1"}, withheld=withheld):
        pass
    for name, names in (("one", []), ("two", ["OPENAI_API_KEY"])):
        log = (workshop.home / f"logs/ext-{name}.log").read_text()
        assert log == f"{workshop.home}/extensions/{name} True {sorted(['LC_CTYPE', 'PATH', 'SHOWN', *names])}\n"


async def test_a_slow_one_is_waited_for_only_so_long(workshop):
    workshop.acting("good")
    workshop.acting("slow", "silent")
    async with workshop.host(wait=False) as host:
        await workshop.heard.until(lambda: state_of(host, "good").state is ExtensionState.READY)
        assert await host.wait_ready(0.05) == ["slow"]


async def test_the_log_is_private_and_keeps_output_and_problems(workshop):
    workshop.script("chatty", "greet(); print('hi', file=sys.stderr, flush=True); write(b'oops\\n'); serve()")
    async with workshop.host() as host:
        await workshop.heard.until(lambda: workshop.heard.complaints)
        path = workshop.home / "logs/ext-chatty.log"
        assert state_of(host, "chatty").log == str(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    assert "hi\n" in text
    assert "[zot] wrote a line that is not a frame" in text


async def test_a_data_directory_that_cannot_be_made_stops_no_extension(workshop):
    workshop.acting("x", "good", "x", data="separate")
    (workshop.home / "data").write_text("in the way")
    async with workshop.host() as host:
        assert await run(host, "x") == (False, "{}")
    assert "could not be made: Not a directory" in (workshop.home / "logs/ext-x.log").read_text()


# --- tools ----------------------------------------------------------------------------------------------------


async def test_a_tool_is_listed_as_registered(workshop):
    tool = {
        "name": "weather",
        "description": "Tells it.",
        "schema": {"properties": {"city": {"type": "string"}}},
        "replay": "safe",
        "parallel": False,
        "exposure": "codemode",
        "interactive": True,
    }
    workshop.script("w", f"hello(); say({{'type': 'register_tool', **{tool!r}}}); say({{'type': 'ready'}}); serve()")
    async with workshop.host() as host:
        found = host.offers.tools()[1]
        assert (found.spec.name, found.spec.description) == ("weather", "Tells it.")
        assert found.spec.schema == {"type": "object", "properties": {"city": {"type": "string"}}}
        assert (found.replay, found.parallel, found.exposure) == (Replay.SAFE, False, "deferred")
        assert (found.is_interactive, found.extension) == (True, "w")
        plain = host.offers.tools()[0]
        assert (plain.replay, plain.parallel, plain.exposure, plain.is_interactive) == (
            Replay.NEVER,
            True,
            "direct",
            False,
        )


async def test_many_calls_at_once_find_their_answers_in_any_order(workshop):
    source = """
greet()
held = []
for frame in frames():
    held.append(frame)
    if len(held) == 20:
        for one in reversed(held):
            answer(one)
"""
    workshop.script("late", source)
    async with workshop.host() as host, asyncio.TaskGroup() as group:
        calls = [group.create_task(run(host, "late", number=number)) for number in range(20)]
    assert [task.result() for task in calls] == [(False, f'{{"number": {number}}}') for number in range(20)]


async def test_progress_is_shown_while_a_call_runs(workshop):
    source = """
greet()
def work(frame):
    say({"type": "tool_progress", "id": frame["id"], "text": "half"})
    say({"type": "tool_progress", "id": "nobody", "text": "lost"})
    say(result(frame, activate_tools=["more"]))
serve(work)
"""
    workshop.script("slow", source)
    shown: list[str] = []
    async with workshop.host() as host:
        outcome = await host.offers.tools()[0].run({}, context(progress=shown.append))
    assert (outcome.is_error, shown) == (False, ["half"])
    assert workshop.heard.activated == [("s_1", ("more",))]


@pytest.mark.parametrize(("capabilities", "told"), [(["tool_cancel"], True), ([], False)])
async def test_a_cancelled_call_is_told_to_those_who_want_to_know(workshop, capabilities, told):
    source = f"""
greet(capabilities={capabilities!r})
for frame in frames():
    say({{"type": "notify", "message": frame["type"] + " " + frame.get("id", "")}})
"""
    workshop.script("x", source)
    wishes = workshop.heard.wishes

    def heard():
        return [wish.message for _, _, wish in wishes]

    async with workshop.host() as host:
        async with asyncio.TaskGroup() as group:
            call = group.create_task(run(host, "x"))
            await workshop.heard.until(lambda: wishes)
            call.cancel()
        tell(host, ext.Event(event="turn_start"))
        await workshop.heard.until(lambda: any(message.startswith("event") for message in heard()))
    key = heard()[0].removeprefix("tool_call ")
    assert (f"tool_cancel {key}" in heard()) == told


async def test_a_call_that_takes_too_long_is_cancelled(workshop):
    source = """
greet(capabilities=["tool_cancel"])
for frame in frames():
    say({"type": "notify", "message": frame["type"]})
"""
    workshop.script("x", source)
    async with workshop.host(limits=ExtensionTimeouts(tool_s=0.05)) as host:
        assert await run(host, "x") == (True, "x failed: x did not answer within 0.05 s")
        await workshop.heard.until(lambda: len(workshop.heard.wishes) == 2)
    assert [wish.message for _, _, wish in workshop.heard.wishes] == ["tool_call", "tool_cancel"]


async def test_a_cancelled_call_of_an_extension_for_all_says_what_it_was_about(workshop):
    source = """
greet(capabilities=["tool_cancel"])
for frame in frames():
    say({"type": "notify", "message": json.dumps([frame["type"], frame.get("session_id"), frame.get("cwd")])})
"""
    workshop.script("x", source, scope="daemon")
    wishes = workshop.heard.wishes
    async with workshop.host() as host:
        async with asyncio.TaskGroup() as group:
            call = group.create_task(run(host, "x"))
            await workshop.heard.until(lambda: wishes)
            call.cancel()
        await workshop.heard.until(lambda: len(wishes) == 2)
    assert [json.loads(wish.message) for _, _, wish in wishes] == [
        ["tool_call", "s_1", "/project"],
        ["tool_cancel", "s_1", "/project"],
    ]


async def test_arguments_over_4_mib_are_not_sent(workshop):
    workshop.acting("good")
    async with workshop.host() as host:
        is_error, text = await run(host, "good", text="x" * 5_000_000)
        assert (is_error, text) == (True, "good failed: good cannot be sent more than 4 MiB at once")
        assert await run(host, "good", text="y" * 4_000_000) == (False, json.dumps({"text": "y" * 4_000_000}))


async def test_a_crash_fails_its_calls_at_once_and_another_process_serves(workshop):
    workshop.acting("bad", "dies in a call", "bad")
    async with workshop.host() as host:
        tool = host.offers.tools()[0]
        assert await run(host, "bad") == (True, "bad failed: bad exited with code 5: out of luck")
        assert tool_names(host) == []
        outcome = await tool.run({}, context())
        assert getattr(outcome.content[0], "text", "") == (
            "bad exited with code 5: out of luck; bad cannot be called now"
        )
        await workshop.heard.until(lambda: ("bad", "starting", "") in workshop.heard.states[2:])
        assert await host.wait_ready() == []  # nobody waits for one that has had its chance
        await workshop.heard.until(lambda: workshop.heard.states.count(("bad", "ready", "")) == 2)
        assert tool_names(host) == ["bad"]


async def test_it_is_parked_after_five_crashes_and_a_reload_frees_it(workshop, tmp_path, monkeypatch):
    monkeypatch.setattr(supervision, "BACKOFF_S", 0.05)
    workshop.extension(
        "x", ["sh", "-c", f"test -e {tmp_path}/fine && exec {sys.executable} -I -S {PROGRAM} good x; exit 7"]
    )
    async with workshop.host(wait=False) as host:
        await workshop.heard.until(lambda: state_of(host, "x").state is ExtensionState.PARKED)
        reason = "exited with code 7; it crashed 5 times in a row and is not restarted"
        assert state_of(host, "x").reason == reason
        assert ("x", reason) in host.doctor()
        assert await host.reload("x") == "x exited with code 7"
        (tmp_path / "fine").touch()
        assert await host.reload("x") is None
        assert await run(host, "x") == (False, "{}")


async def test_late_registrations_count_and_can_be_withdrawn(workshop):
    source = """
greet()
for frame in frames():
    say({"type": "register_tool", "name": "late", "schema": {}})
    say({"type": "unregister", "kind": "tool", "name": "x"})
    say({"type": "unregister", "kind": "command", "name": "x"})
"""
    workshop.script("x", source)
    async with workshop.host() as host:
        before = workshop.heard.changes
        tell(host, ext.Event(event="turn_start"))
        await workshop.heard.until(lambda: tool_names(host) == ["late"])
        await workshop.heard.until(lambda: host.offers.commands() == [])
        assert workshop.heard.changes > before


# --- stop -----------------------------------------------------------------------------------------------------


async def test_a_stop_ends_calls_and_leaves_nothing(workshop):
    workshop.acting("deaf", "answers nothing", "deaf")
    async with workshop.host() as host, asyncio.TaskGroup() as group:
        tool = host.offers.tools()[0]
        call = group.create_task(tool.run({}, context()))
        await asyncio.sleep(0)  # it is sent
        await host.stop()
    assert getattr(call.result().content[0], "text", "") == "deaf failed: deaf was stopped"
    assert host.status() == []
    assert psutil.Process().children() == []
    assert host.offers.tools() == ()


async def test_polite_extensions_are_stopped_by_a_word(workshop):
    source = """
greet()
for line in sys.stdin:
    if json.loads(line)["type"] == "shutdown":
        print("asked to leave", file=sys.stderr, flush=True)
        rest = sys.stdin.read()
        print("nothing follows" if not rest else rest, file=sys.stderr, flush=True)
        sys.exit(0)
"""
    workshop.script("x", source)
    async with workshop.host():
        pass
    assert (workshop.home / "logs/ext-x.log").read_text() == "asked to leave\nnothing follows\n"


async def test_a_program_that_is_missing_leaves_no_open_log(workshop):
    workshop.extension("gone", ["no-such-program"])
    async with workshop.host() as host:
        await host.wait_ready()
        assert "no-such-program" in state_of(host, "gone").reason
        assert [file.path for file in psutil.Process().open_files() if file.path.endswith("ext-gone.log")] == []


async def test_no_descriptor_and_no_thread_is_left(workshop):
    workshop.acting("good")
    workshop.acting("silent")
    async with workshop.host(wait=False):
        pass
    before = psutil.Process().num_fds()
    for _ in range(3):
        async with workshop.host(wait=False) as host:
            await workshop.heard.until(lambda host=host: state_of(host, "good").state is ExtensionState.READY)
    assert psutil.Process().num_fds() == before
    assert os.getpid()  # and the fixture of all tests looks for tasks and processes
