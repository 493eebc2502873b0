"""Slash commands as Markdown files, of the user and of a project, in a real daemon."""

import os
import signal
from pathlib import Path

import pytest

from tests.e2e.shop import Shop
from zotd.testing.script import CallPart, Hang, Refusal, ScriptedReply, calls, text


class Desk:
    """A session in a directory with files of commands."""

    def __init__(self, house):
        self.house = house
        self.home, self.cwd = house.place.home, house.cwd

    def write(self, name, content, *, into=None):
        """A file in the user's directory, or in another one."""
        file = (into or self.home / "commands") / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    def write_project_s(self, name, content, *, dot=".zot"):
        return self.write(name, content, into=self.cwd / dot / "commands")

    async def open(self, *answers, model, **options):
        self.server = await model(*(answers or [text("fine")] * 5))
        self.talk = await self.house.create("openai", self.server, **options)
        return self.talk

    async def run(self, name, args=""):
        """Run a command that is a prompt; what came of it."""
        answer = await self.talk.ask("run_command", name=name, args=args)
        assert answer["action"] == "prompt"
        return await self.talk.until("done")

    async def refusal(self, name, args=""):
        return (await self.talk.client.answer("run_command", session=self.talk.id, name=name, args=args))["error"]

    async def listed(self):
        found = await self.talk.ask("complete", kind="command", text="")
        return {one["text"]: one for one in found["found"]}

    async def trust(self):
        admin = await self.house.connect(role="admin")
        await admin.ask("trust.grant", path=str(self.cwd))

    @property
    def sent(self):
        """What the model read of the user, by request."""
        return [said(request)[-1] for request in self.server.requests]


def said(request):
    return [one["content"].partition("\n\n(The date is")[0] for one in request.messages if one["role"] == "user"]


@pytest.fixture
def desk(house):
    return Desk(house)


async def test_a_file_is_a_prompt_with_the_arguments_in_their_places(desk, model):
    desk.write("fix.md", "---\ndescription: Fixes it.\n---\nFix $1 with $2, $3 and $ARGUMENTS. Pay $10.\n")
    desk.write("plain.md", "Look at @src/main.py.\n")
    await desk.open(model=model)
    await desk.run("/fix", "12 'two words'")
    await desk.run("fix", "it's $2 here")
    await desk.run("plain", "and hurry")
    assert desk.sent == [
        "Fix 12 with two words,  and 12 'two words'. Pay $10.",
        "Fix it's with $2, here and it's $2 here. Pay $10.",
        "Look at @src/main.py.\n\nand hurry",
    ]


async def test_directories_are_parts_of_the_name_and_an_edit_counts_at_the_next_use(desk, model):
    file = desk.write("frontend/test.md", "---\ndescription: Tests it.\nargument-hint: [suite]\n---\nTest it.")
    await desk.open(model=model)
    about = (await desk.listed())["frontend:test"]
    assert (about["detail"], about["hint"], about["source"]) == ("Tests it.", "[suite]", "$ZOT_HOME/commands")
    await desk.run("frontend:test")
    file.write_text("# Test again\nAll of it.")
    await desk.run("frontend:test")
    assert desk.sent == ["Test it.", "# Test again\nAll of it."]
    assert (await desk.listed())["frontend:test"]["detail"] == "Test again"


@pytest.mark.parametrize("dot", [".zot", ".claude"])
async def test_a_project_s_commands_need_trust_and_come_before_the_user_s(desk, model, dot):
    desk.write("deploy.md", "The user's.")
    desk.write_project_s("deploy.md", "The project's.", dot=dot)
    desk.write_project_s("only.md", "Only the project's.", dot=dot)
    await desk.open(model=model)
    assert "only" not in await desk.listed()
    await desk.run("deploy")
    assert "zotctl trust grant" in await desk.refusal("only")
    await desk.trust()
    assert (await desk.listed())["only"]["source"] == f"{dot}/commands"
    await desk.run("deploy")
    assert desk.sent == ["The user's.", "The project's."]


async def test_a_name_that_is_taken_means_what_it_meant(desk, house, model):
    shop = Shop(house)
    shop.write("notes", '@ext.command("todo")\ndef todo(args):\n    return "of the extension"\n')
    for name in ("todo", "Help", "stop", "skill:x"):
        desk.write(f"{name}.md", "Of the file.")
    desk.write("skill/y.md", "Of the file.")
    desk.server = await model(text("fine"))
    desk.talk = await shop.open(desk.server)
    answer = await desk.talk.ask("run_command", name="todo")
    assert (answer["extension"], answer["text"]) == ("notes", "of the extension")
    assert (await desk.talk.ask("run_command", name="stop"))["action"] == "noop"
    listed = await desk.listed()
    assert (listed["todo"]["source"], listed["stop"]["source"]) == ("notes", "built in")
    assert not {"Help", "skill:x", "skill:y"} & set(listed)
    findings = [one["text"] for one in (await desk.talk.ask("ext.doctor"))["findings"]]
    hidden = [one for one in findings if "is hidden by" in one]
    assert [one.rpartition(" is hidden by ")[2] for one in hidden] == [
        "/Help of zot",
        "/skill:y of zot",
        "/stop of zot",
        "/todo of notes",
    ]


async def test_shell_commands_of_a_file_run_by_the_session_s_own_bash(desk, model, look, results):
    desk.write("look.md", "Changes: !`echo first` and (!`echo $1`). Not this!`echo no`.")
    await desk.open(text("seen"), model=model)
    events = await desk.run("look", "second")
    assert [one["name"] for one in look.only(events, "tool_call")] == ["bash", "bash"]
    assert [one.splitlines()[2] for one in results(desk.server.requests[0])] == ["first", "second"]
    first, second = (f"(output of `echo {word}`: see the call below)" for word in ("first", "second"))
    assert said(desk.server.requests[0]) == [f"Changes: {first} and ({second}). Not this!`echo no`."]


async def test_they_wait_for_a_person_where_the_model_s_calls_do(desk, model, results):
    desk.write("touch.md", "Made: !`touch made`")
    await desk.open(text("then not"), model=model, mode="ask")
    await desk.talk.ask("run_command", name="touch")
    asked = (await desk.talk.until("approval_requested"))[-1]
    assert asked["args"]["command"] == "touch made"
    assert not (desk.cwd / "made").exists()
    await desk.talk.ask("approve", approval=asked["approval"], args_digest=asked["args_digest"], decision="deny")
    await desk.talk.until("done")
    assert not (desk.cwd / "made").exists()
    assert "denied" in results(desk.server.requests[0])[0] or "not run" in results(desk.server.requests[0])[0]


async def test_they_are_still_run_when_the_run_had_ended_before_them(desk, house, model, results):
    desk.write("look.md", "Changes: !`echo first`")
    shop = Shop(house)
    body = """
        import os
        @ext.guard("turn_start")
        def wait(event):
            return Decision.block("not yet") if os.path.exists("closed") else None
        """
    closed = shop.write("gate", body) / "closed"
    closed.touch()
    desk.server = await model(text("seen"), text("again"))
    desk.talk = await shop.open(desk.server)
    await desk.run("look")
    assert desk.server.requests == []
    closed.unlink()
    for _ in range(2):
        await desk.talk.ask("run_command", name="continue")
        await desk.talk.until("done")
        await desk.talk.ask("shell", command="true", context=True)
        await desk.talk.until("done")
    assert [len(results(request)) for request in desk.server.requests] == [1, 1]
    assert "first" in results(desk.server.requests[0])[0]


async def test_the_one_who_runs_it_says_how_long_its_run_waits_for_a_person_and_a_model(desk, model, look, results):
    desk.write("touch.md", "Made: !`touch made`")
    await desk.open(text("then not"), Refusal(529), model=model, mode="ask")
    wishes = {"name": "touch", "unattended": "deny", "patience_s": 0}
    await desk.talk.ask("run_command", **wishes)
    await desk.talk.until("done")
    assert "needs a person's approval" in results(desk.server.requests[0])[0]
    await desk.talk.ask("run_command", **wishes)
    events = await desk.talk.until("done")
    assert look.only(events, "turn_end")[-1]["stop"] == "error"
    assert not look.only(events, "retry")
    assert await desk.talk.refused("run_command", **wishes | {"unattended": "rules"}) == "bad_request"


@pytest.mark.parametrize("args", ["a;touch made", "$(touch made)", "`touch made`", "'a b'"])
async def test_an_argument_that_a_shell_would_interpret_is_refused(desk, model, args):
    desk.write("show.md", "!`echo $1 $ARGUMENTS`")
    await desk.open(model=model)
    assert "which takes only words of letters" in await desk.refusal("show", args)
    assert not (desk.cwd / "made").exists()
    assert desk.server.requests == []


LIMITED = "---\nallowed-tools: Bash(echo:*), Read(notes/**)\n---\nGo."


async def test_allowed_tools_narrow_the_run_and_no_other(desk, model, results):
    (desk.cwd / "notes").mkdir()
    for name in ("notes/a", "secret"):
        (desk.cwd / name).write_text(f"{name}\n")
    desk.write("go.md", LIMITED)
    tried = (
        CallPart("bash", {"command": "echo one && echo two"}),
        CallPart("bash", {"command": "echo x; touch made"}),
        CallPart("bash", {"command": "echo $(touch made)"}),
        CallPart("read", {"path": "notes/a"}),
        CallPart("read", {"path": "notes/../secret"}),
        CallPart("write", {"path": "made", "content": "x"}),
    )
    await desk.open(calls(*tried), text("ok"), calls(*tried[-1:]), text("ok"), model=model)
    await desk.run("go")
    denied = "/go allows only these tools: Bash(echo:*), Read(notes/**)"
    done = [one for one in results(desk.server.requests[1]) if denied not in one]
    assert ["one\ntwo" in done[0], *done[1:]] == [True, "notes/a\n"]
    assert "only these tools may be used, with these arguments: Bash(echo:*), Read(notes/**)" in desk.sent[0]
    assert not (desk.cwd / "made").exists()
    await desk.talk.run("write it")
    assert (desk.cwd / "made").exists()


async def test_a_run_stays_as_narrow_after_a_crash_and_after_a_compaction(process, model, results):
    desk = Desk(process)
    desk.write("go.md", LIMITED)
    attempt = calls(CallPart("bash", {"command": "touch made"}))
    server = desk.server = await model(ScriptedReply([Hang()]), text("a summary"), attempt, text("ok"))
    options = {"provider": "ollama", "model": "m", "base_url": server.openai_url, "secrets": None}
    desk.talk = await process.create("ollama", None, **options)
    await desk.talk.ask("run_command", name="go")
    await desk.talk.until("turn_start")
    while not server.requests:
        await desk.talk.client.ask("ping")
    process.restart(signal.SIGKILL)
    desk.talk = await process.follow(desk.talk.id)
    await desk.talk.ask("compact")
    await desk.talk.until("compact_done")
    await desk.talk.until("done")
    process.restart(signal.SIGKILL)
    desk.talk = await process.follow(desk.talk.id)
    await desk.talk.ask("run_command", name="continue")
    await desk.talk.until("done")
    assert "/go allows only these tools" in results(server.requests[-1])[-1]
    assert not (desk.cwd / "made").exists()


BAD = {
    "not UTF-8": b"caf\xe9",
    "over 256 KiB": b"x" * 10_000_000,
    "no closing --- line": b"---\ndescription: x\n\nText",
    "is no field": b"---\ndescription\n---\nText",
    "cannot keep what its disallowed-tools demands": b"---\ndisallowedTools: Bash\n---\nText",
}


@pytest.mark.parametrize("reason", BAD)
async def test_a_file_that_cannot_be_used_is_one_sentence_and_disturbs_no_other(desk, model, reason):
    file = desk.write("bad.md", BAD[reason])
    desk.write("good.md", "Good.")
    await desk.open(model=model)
    assert {"bad", "good"} & set(await desk.listed()) == {"good"}
    refused = await desk.refusal("bad")
    assert reason in refused
    assert (str(file) in refused, "\n" in refused) == (True, False)
    assert [one["text"] for one in (await desk.talk.ask("ext.doctor"))["findings"]] == [refused.partition(": ")[2]]
    await desk.run("good")


async def test_links_lead_neither_into_other_directories_nor_out_of_a_project(desk, model, tmp_path):
    (tmp_path / "key.md").write_text("secret")
    desk.write("good.md", "Good.")
    (desk.home / "commands" / "linked").symlink_to(tmp_path)
    (desk.home / "commands" / "mine.md").symlink_to(tmp_path / "key.md")
    os.mkfifo(desk.home / "commands" / "pipe.md")
    desk.write_project_s("fine.md", "Fine.", dot=".claude")
    (desk.cwd / ".claude" / "commands" / "key.md").symlink_to(tmp_path / "key.md")
    await desk.open(model=model)
    await desk.trust()
    assert {"good", "mine", "fine", "key", "linked:key", "pipe"} & set(await desk.listed()) == {"good", "mine", "fine"}
    assert "leads out of" in await desk.refusal("key")
    assert "is a link" in await desk.refusal("linked:key")
    assert "not a regular file" in await desk.refusal("pipe")


async def test_what_has_no_effect_is_told_once(desk, model, look):
    desk.write("go.md", "---\nmodel: haiku\nallowed-tools: [Read, 'WebFetch(domain:x)']\n---\nGo.")
    await desk.open(model=model)
    first, second = [look.only(await desk.run("go"), "notice") for _ in range(2)]
    assert [one["text"].partition(": ")[2] for one in first] == [
        "model has no effect in zot",
        "zot does not know what WebFetch(domain:x) in allowed-tools means, and allows nothing because of it",
    ]
    assert second == []


async def test_the_shell_commands_of_a_project_are_part_of_what_is_trusted(desk, model):
    desk.write_project_s("look.md", "Only text.", dot=".claude")
    await desk.open(model=model)
    await desk.trust()
    await desk.run("look")
    await desk.talk.client.ask("subscribe", topics=["trust"])
    desk.write_project_s("look.md", "!`touch made`", dot=".claude")
    required = (await desk.talk.client.until("trust_required"))[-1]
    assert required["items"] == [".claude/commands/look.md"]
    assert "zotctl trust grant" in await desk.refusal("look")
    admin = await desk.house.connect(role="admin")
    shown = (await admin.ask("trust.list", path=str(desk.cwd)))["workspaces"][0]
    assert shown["commands"] == [".claude/commands/look.md: touch made"]


async def test_a_shell_command_is_not_run_before_its_file_is_noticed(desk, model):
    desk.write_project_s("look.md", "Only text.", dot=".claude")
    await desk.open(model=model)
    await desk.trust()
    await desk.run("look")
    for number in range(5):
        desk.write_project_s(f"now{number}.md", "!`touch made`", dot=".claude")
        assert "zotctl trust grant" in await desk.refusal(f"now{number}")
        (desk.cwd / ".claude" / "commands" / f"now{number}.md").unlink()
    assert not (desk.cwd / "made").exists()


@pytest.mark.parametrize("variables", [{"ZOT_EXT_CLAUDE_COMMANDS": "true"}, {}], ids=["wanted", "not wanted"])
async def test_the_user_s_commands_of_claude_code_need_a_setting(process, model, variables):
    desk = Desk(process)
    desk.write("mine.md", "Mine.", into=Path(desk.house.place.env["HOME"]) / ".claude" / "commands")
    await desk.open(model=model)
    assert ("mine" in await desk.listed()) is bool(variables)
