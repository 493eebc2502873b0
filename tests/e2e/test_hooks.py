"""Hooks in the format of Claude Code: real scripts that refuse, rewrite, format and add context, in a real daemon."""

import json
import shlex
import signal
import sys
import textwrap
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.e2e.conftest import House
from tests.e2e.shop import Shop, until_state
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.script import CallPart, calls, text


class Hooks:
    """The hooks of a home, and of the working directory."""

    def __init__(self, shop):
        self.shop = shop
        self.home, self.cwd = shop.house.place.home, shop.house.cwd
        self.files = {"home": self.home / "hooks.json", "project": self.cwd / ".claude" / "settings.json"}
        self.entries = {}
        self.seen = self.home.parent / "seen"

    def script(self, name, body, *, where="home"):
        """A Python script that has its input as `given`; returns the command that runs it."""
        directory = self.home if where == "home" else self.cwd / ".claude" / "hooks"
        directory.mkdir(parents=True, exist_ok=True)
        head = f"import json, os, sys, time, pathlib\nSEEN = {str(self.seen)!r}\ngiven = json.load(sys.stdin)\n"
        (directory / f"{name}.py").write_text(head + textwrap.dedent(body))
        return shlex.join([sys.executable, str(directory / f"{name}.py")])

    def add(self, event, command, *, matcher=None, where="home", **fields):
        group = {"hooks": [{"type": "command", "command": command, **fields}]}
        if matcher is not None:
            group["matcher"] = matcher
        events = self.entries.setdefault(where, {})
        events.setdefault(event, []).append(group)
        self.files[where].parent.mkdir(parents=True, exist_ok=True)
        self.files[where].write_text(json.dumps({"hooks": events}))

    async def open(self, server, vendor="openai", **options):
        """A session whose hooks are ready: a run waits 3 s for them, which a busy machine may need for their start."""
        watcher = await self.shop.house.connect()
        await watcher.ask("subscribe", topics=["extensions"])
        talk = await self.shop.open(server, vendor, **options)
        await until_state(watcher, "hooks", "ready")
        return talk

    def told(self):
        """What `KEEP` has written, one line for each run."""
        return [json.loads(line) for line in self.seen.read_text().splitlines()] if self.seen.exists() else []

    async def heard(self, talk, count):
        """What `KEEP` has written, once it was run that often."""
        while len(self.told()) < count:
            await talk.client.ask("ping")
        return self.told()


KEEP = """
with open(SEEN, "a") as file:
    file.write(json.dumps(given) + "\\n")
print(json.dumps({"systemMessage": "written down"}))
"""
"""Writes down what a hook was given."""


@pytest.fixture
def hooks(shop):
    return Hooks(shop)


async def test_a_hook_that_exits_with_2_refuses_a_call_and_the_model_reads_its_stderr(
    hooks, shop, model, vendor, results
):
    (hooks.cwd / "keep").mkdir()
    check = """
    command = given["tool_input"]["command"]
    if "rm -rf" in command:
        print("rm -rf is for people", file=sys.stderr)
        sys.exit(2)
    """
    hooks.add("PreToolUse", hooks.script("check", check), matcher="Bash")
    server = await model(
        calls(CallPart("bash", {"command": "rm -rf keep"}), CallPart("bash", {"command": "echo fine"})), text("ok")
    )
    talk = await hooks.open(server, vendor)
    await talk.run("delete keep")
    assert (hooks.cwd / "keep").exists()
    refused, ran = results(server.requests[1])
    assert "rm -rf is for people" in refused
    assert "fine" in ran


async def test_a_hook_gets_the_call_in_the_words_of_its_format(hooks, shop, model):
    (hooks.cwd / "a.txt").write_text("one\ntwo\n")
    hooks.add("PreToolUse", hooks.script("keep", KEEP), matcher="Edit|Write")
    server = await model(
        calls(
            CallPart("edit", {"path": "a.txt", "edits": [{"oldText": "one", "newText": "1"}]}),
            CallPart("read", {"path": "a.txt"}),
        ),
        text("ok"),
    )
    talk = await hooks.open(server)
    events = await talk.run()
    (given,) = hooks.told()
    call = next(event for event in events if event["type"] == "tool_call")
    assert given == {
        "session_id": talk.id,
        "cwd": str(hooks.cwd),
        "hook_event_name": "PreToolUse",
        "permission_mode": "bypassPermissions",
        "tool_name": "Edit",
        "tool_input": {"file_path": str(hooks.cwd / "a.txt"), "old_string": "one", "new_string": "1"},
        "tool_use_id": call["id"],
    }


async def test_a_hook_rewrites_the_input_of_a_call(hooks, shop, model, results):
    safer = """
    print(json.dumps({"hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow",
        "updatedInput": {"command": "echo safe in " + os.environ["CLAUDE_PROJECT_DIR"]},
    }}))
    """
    hooks.add("PreToolUse", hooks.script("safer", safer), matcher="*")
    server = await model(calls(CallPart("bash", {"command": "echo danger"})), text("ok"))
    talk = await hooks.open(server)
    await talk.run()
    assert f"safe in {hooks.cwd}" in results(server.requests[1])[0]


async def test_a_hook_formats_a_file_after_an_edit_before_the_model_goes_on(hooks, shop, model, results):
    upper = """
    path = pathlib.Path(given["tool_input"]["file_path"])
    path.write_text(path.read_text().upper())
    assert given["tool_response"]["filePath"] == str(path)
    print(json.dumps({"decision": "block", "reason": "I wrote it in capitals."}))
    """
    hooks.add("PostToolUse", hooks.script("upper", upper), matcher="Edit|Write")
    server = await model(
        calls(CallPart("write", {"path": "a.txt", "content": "quiet\n"})),
        calls(CallPart("read", {"path": "a.txt"})),
        text("ok"),
    )
    talk = await hooks.open(server)
    await talk.run()
    assert "I wrote it in capitals." in results(server.requests[1])[0]
    assert "QUIET" in results(server.requests[2])[1]


async def test_a_hook_adds_context_to_a_prompt_and_people_see_their_own_words(hooks, shop, model, vendor, look):
    hooks.add("UserPromptSubmit", "echo The build is red.")
    hooks.add("SessionStart", "echo This is the shop.")
    server = await model(text("ok"), text("again"))
    talk = await hooks.open(server, vendor)
    events = await talk.run("hello")
    prompt = str(server.requests[0].messages[-1])
    assert "hello" in prompt
    assert "The build is red." in prompt
    assert "This is the shop." in prompt
    assert look.only(events, "user_message")[0]["content"] == [{"type": "text", "text": "hello"}]
    await talk.run("more")
    assert "This is the shop." not in str(server.requests[1].messages[-1])
    assert "The build is red." in str(server.requests[1].messages[-1])


async def test_a_hook_refuses_a_prompt_which_no_model_ever_sees(hooks, shop, model):
    check = """
    if "sk-" in given["prompt"]:
        print(json.dumps({"decision": "block", "reason": "that is a key"}))
    """
    hooks.add("UserPromptSubmit", hooks.script("check", check))
    server = await model(text("ok"))
    talk = await hooks.open(server)
    assert await talk.refused("prompt", message="use sk-1234") == "blocked"
    await talk.run("use my key")
    assert "sk-1234" not in str(server.requests[0].messages)


async def test_a_hook_that_takes_too_long_is_ended_with_its_children_and_the_call_runs(
    hooks, shop, model, results, look
):
    hooks.add("PreToolUse", "sleep 600 & sleep 600", timeout=0.3)
    server = await model(calls(CallPart("bash", {"command": "echo ran"})), text("ok"))
    talk = await hooks.open(server)
    await talk.ask("subscribe", topics=["extensions"])
    await talk.ask("prompt", message="go")
    events = await talk.until("done")
    assert "ran" in results(server.requests[1])[0]
    (note,) = look.only(events, "ext_notify")
    assert "did not end within 0.3 s and was stopped" in note["message"]


async def test_a_hook_may_take_longer_than_other_guards(hooks, shop, model, results):
    hooks.add("PreToolUse", "sleep 6; echo too late >&2; exit 2")
    server = await model(calls(CallPart("bash", {"command": "echo ran"})), text("ok"))
    talk = await hooks.open(server)
    await talk.run()
    assert "too late" in results(server.requests[1])[0]


async def test_hooks_of_a_project_run_only_when_it_is_trusted(hooks, shop, model, results):
    command = hooks.script("check", "print('no', file=sys.stderr)\nsys.exit(2)", where="project")
    hooks.add("PreToolUse", command, where="project")
    call = CallPart("bash", {"command": "echo ran"})
    server = await model(calls(call), text("ok"), calls(call), text("ok"))
    talk = await shop.open(server)
    await talk.run()
    assert "ran" in results(server.requests[1])[0]
    admin = await hooks.shop.house.connect(role="admin")
    (found,) = (await admin.ask("trust.list", path=str(hooks.cwd)))["workspaces"]
    assert found["items"] == [".claude/hooks", ".claude/hooks/check.py", ".claude/settings.json"]
    assert found["commands"] == [f".claude/settings.json, PreToolUse: {command}"]
    await admin.ask("trust.grant", path=str(hooks.cwd))
    await talk.run()
    assert results(server.requests[3])[-1] == "Error: no"


async def test_a_hook_has_a_person_asked_and_another_hook_hears_of_that(hooks, shop, model, house, look):
    ask = {"permissionDecision": "ask", "permissionDecisionReason": "it deploys"}
    hooks.add("PreToolUse", f"echo {shlex.quote(json.dumps({'hookSpecificOutput': ask}))}", matcher="Bash")
    hooks.add("Notification", hooks.script("keep", KEEP), matcher="permission_prompt")
    server = await model(calls(CallPart("bash", {"command": "make deploy"})), text("ok"))
    client = await house.connect(can_approve=True)
    talk = await hooks.open(server, client=client)
    await client.ask("subscribe", topics=["extensions"])
    await talk.ask("prompt", message="go")
    asked = (await talk.until("approval_requested"))[-1]
    await talk.ask("approve", approval=asked["approval"], args_digest=asked["args_digest"], decision="deny")
    (given,) = await hooks.heard(talk, 1)
    assert given["message"] == "bash needs a person's approval: it deploys"
    assert given["notification_type"] == "permission_prompt"


async def test_a_hook_that_allows_a_call_spares_the_question_of_the_mode_but_no_rule(hooks, shop, model, results):
    allow = json.dumps({"hookSpecificOutput": {"permissionDecision": "allow"}})
    hooks.add("PreToolUse", f"echo {shlex.quote(allow)}")
    call = CallPart("bash", {"command": "echo ran"})
    server = await model(calls(call), text("ok"), calls(call), text("ok"))
    talk = await hooks.open(server, mode="ask")
    await talk.run()
    assert "ran" in results(server.requests[1])[0]
    await talk.ask("set_mode", mode="read-only")
    await talk.run()
    assert "this session is read-only" in results(server.requests[3])[-1]


async def test_a_hook_has_a_session_go_on_and_knows_the_second_time_that_it_did(hooks, shop, model, look):
    check = """
    if not given["stop_hook_active"]:
        print("The tests are missing.", file=sys.stderr)
        sys.exit(2)
    """
    hooks.add("Stop", hooks.script("check", check))
    server = await model(text("Done."), text("Now really."))
    talk = await hooks.open(server)
    await talk.run()
    events = await talk.until("done")
    assert look.only(events, "user_message")[0]["content"][0]["text"] == "The tests are missing."
    assert len(server.requests) == 2
    await talk.client.ask("ping")
    assert await talk.state() == "idle"


async def test_a_hook_stops_the_run_before_the_model_is_asked_again(hooks, shop, model, look):
    stop = json.dumps({"continue": False, "stopReason": "the disk is full"})
    hooks.add("PostToolUse", f"echo {shlex.quote(stop)}")
    server = await model(calls(CallPart("bash", {"command": "echo ran"})), text("never"))
    talk = await hooks.open(server)
    events = await talk.run()
    assert look.only(events, "error")[0]["message"] == "the disk is full"
    assert len(server.requests) == 1


async def test_a_message_of_a_hook_and_the_failure_of_another_are_shown_to_people(hooks, shop, model, look):
    hooks.add("UserPromptSubmit", f"echo {shlex.quote(json.dumps({'systemMessage': 'The build is red.'}))}")
    hooks.add("UserPromptSubmit", "no-such-program")
    server = await model(text("ok"))
    talk = await hooks.open(server)
    await talk.ask("subscribe", topics=["extensions"])
    await talk.ask("prompt", message="go")
    notes = {note["message"] for note in look.only(await talk.until("done"), "ext_notify")}
    assert "The build is red." in notes
    (failure,) = notes - {"The build is red."}
    assert failure.startswith("the hook no-such-program of UserPromptSubmit failed with exit code 127: ")


async def test_the_beginning_of_a_session_and_a_compaction_are_told(hooks, shop, model):
    for event in ("SessionStart", "PreCompact", "PostCompact"):
        hooks.add(event, hooks.script("keep", KEEP))
    server = await model(text("ok"), text("A summary."))
    talk = await hooks.open(server)
    await talk.ask("subscribe", topics=["extensions"])
    await talk.run()
    await talk.ask("compact")
    found = {(told["hook_event_name"], told.get("source"), told.get("trigger")) for told in await hooks.heard(talk, 3)}
    assert found == {
        ("SessionStart", "startup", None),
        ("PreCompact", None, "manual"),
        ("PostCompact", None, "manual"),
    }


async def test_the_end_of_a_session_is_told_when_the_daemon_stops(process, model):
    hooks = Hooks(Shop(process))
    hooks.add("SessionEnd", hooks.script("keep", KEEP))
    talk = await hooks.open(await model(text("ok")))
    await talk.run()
    process.daemon.end(signal.SIGTERM)
    assert [told["hook_event_name"] for told in hooks.told()] == ["SessionEnd"]


async def test_what_is_wrong_with_a_file_is_told_and_the_other_hooks_run(hooks, shop, model, results):
    hooks.add("PreToolUse", "echo no >&2; exit 2", matcher="Bash")
    hooks.add("PreToolUse", "true", matcher="Ba(sh")
    hooks.add("SubagentStop", "true")
    hooks.add("PostToolUse", "/no/such/program")
    server = await model(calls(CallPart("bash", {"command": "echo ran"})), text("ok"))
    talk = await hooks.open(server)
    await talk.run()
    assert results(server.requests[1])[0] == "Error: no"
    findings = {finding["text"] for finding in (await talk.client.ask("ext.doctor"))["findings"]}
    file = hooks.files["home"]
    assert f"{file}: PostToolUse: the program /no/such/program of a hook does not exist" in findings
    assert any("PreToolUse, entry 2: its matcher is not a regular expression" in text for text in findings)
    assert any("the event SubagentStop is not used" in text for text in findings)


async def test_a_file_that_is_no_json_is_told_and_starts_nothing(hooks, shop, model):
    hooks.files["home"].write_text("{")
    server = await model(text("ok"))
    talk = await shop.open(server)
    await talk.run()
    (finding,) = (await talk.client.ask("ext.doctor"))["findings"]
    assert finding["text"].startswith(f"{hooks.files['home']}: malformed JSON")
    assert (await talk.client.ask("ext.list", session=talk.id))["extensions"] == []


@pytest.mark.parametrize("wanted", [True, False])
async def test_hooks_of_the_settings_of_claude_code_run_when_the_configuration_says_so(
    tmp_path, model, wanted, results
):
    config = tmp_path / "zot" / "config.toml"
    config.parent.mkdir()
    config.write_text(f"[ext]\nclaude_hooks = {str(wanted).lower()}\n")
    async with AsyncExitStack() as stack:
        daemon = stack.enter_context(DaemonProcess(tmp_path))
        hooks = Hooks(Shop(House(stack, daemon.place, daemon)))
        hooks.files["user"] = Path(daemon.place.env["HOME"]) / ".claude" / "settings.json"
        hooks.add("PreToolUse", "echo no >&2; exit 2", where="user")
        server = await model(calls(CallPart("bash", {"command": "echo ran"})), text("ok"))
        talk = await hooks.shop.open(server)
        await talk.run()
        assert ("Error: no" in results(server.requests[1])[0]) is wanted
