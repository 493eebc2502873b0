"""What becomes of a command of `bash` that its jail has refused a path: a person is asked, in a real daemon and real jails."""

import asyncio
import os
import signal

import pytest

from tests.e2e.conftest import only
from tests.e2e.shop import Shop
from tests.e2e.test_workspace import asked_by, bash, decide, opened, results_of
from tests.e2e.test_workspace import user as user  # noqa: PLC0414  (a fixture)
from tests.e2e.test_workspace import yard as yard  # noqa: PLC0414  (a fixture)
from tests.needs import needs
from zotd.jail import Mechanism
from zotd.testing.script import CallPart, calls, text


@pytest.fixture
def data(user):
    """A directory that is neither the working directory nor in the home."""
    folder = user / "data"
    folder.mkdir()
    return folder


def steps(*commands):
    return *(calls(CallPart(*bash(command))) for command in commands), text("done")


def adding(path):
    return f"echo run >> runs; echo x >> {path}"


def about(event):
    return {"approval": event["approval"], "args_digest": event["args_digest"], "decision": "allow"}


async def test_a_person_is_asked_and_the_command_is_not_run_again(yard, data):
    talk, server = await yard.open(*steps(adding(f"{data}/new")))
    asked = await asked_by(talk)
    assert (asked["tool"], asked["args"]["paths"]) == ("files", [str(data)])
    assert asked["preview"].startswith(
        f"A command was refused to change {data} and everything in it, outside of the jail"
    )
    assert asked["preview"].endswith(f"$ {adding(f'{data}/new')}")
    assert await talk.state() == "waiting"
    await decide(talk, asked, scope="session")
    [result] = results_of(await talk.until("done"))
    assert f"It may not: change {data}/new.]" in result
    assert (
        f"every command may change {data} and everything in it for the rest of this session. Nothing was run" in result
    )
    assert ((yard.work / "runs").read_text(), list(data.iterdir())) == ("run\n", [])
    assert "A person has allowed it" in str(server.requests[-1].messages)


async def test_what_is_allowed_for_the_session_is_open_to_its_next_commands_and_file_tools_only(yard, data):
    file = f"{data}/new"
    wrote = calls(CallPart("write", {"path": file, "content": "by write\n"}))
    talk, _ = await yard.open(*steps(adding(file))[:-1], *steps(adding(file))[:-1], wrote, text("done"))
    await decide(talk, await asked_by(talk), scope="session")
    events = await talk.until("done")
    assert only(events, "approval_requested") == []
    assert (data / "new").read_text() == "by write\n"
    other, _ = await yard.open(*steps(adding(f"{data}/other")))
    await decide(other, await asked_by(other), "deny")
    await other.until("done")
    assert not (data / "other").exists()


async def test_a_grant_is_listed_and_closed_again_when_it_is_taken_back(yard, data):
    server_steps = steps(adding(f"{data}/a"), adding(f"{data}/b")), steps(adding(f"{data}/c"))
    talk, _ = await yard.open(*server_steps[0], *server_steps[1])
    await decide(talk, await asked_by(talk), scope="session")
    await talk.until("done")
    [grant] = (await talk.ask("grant.list"))["grants"]
    assert grant == {"tool": "files", "match": str(data)}
    assert await talk.refused("grant.revoke", grants=[grant, {"tool": "files", "match": "/"}]) == "not_found"
    assert (await talk.ask("grant.list"))["grants"] == [grant]
    assert (await talk.ask("grant.revoke", grants=[grant]))["grants"] == []
    await decide(talk, await asked_by(talk), "deny")
    await talk.until("done")
    assert [path.name for path in data.iterdir()] == ["b"]


async def test_once_is_for_the_same_command_one_more_time(yard, data):
    first, second = adding(f"{data}/a"), adding(f"{data}/b")
    talk, _ = await yard.open(*steps(first, second, first, first))
    await decide(talk, await asked_by(talk))
    events = await talk.until("approval_requested")
    assert f"this very command may change {data} and everything in it when it is run once more" in results_of(events)[0]
    assert events[-1]["args"]["command"] == second
    await decide(talk, events[-1])
    events = await talk.until("approval_requested")
    assert ((data / "a").read_text(), (data / "b").exists()) == ("x\n", False)
    assert events[-1]["args"]["command"] == first
    await decide(talk, events[-1], "deny")
    await talk.until("done")
    assert (data / "a").read_text() == "x\n"


async def test_always_is_a_rule_for_all_sessions(yard, data):
    talk, _ = await yard.open(*steps(adding(f"{data}/a")))
    await decide(talk, await asked_by(talk), scope="always")
    await talk.until("done")
    rule = f'[[rules]]\ntool = "files"\nmatch = "{data}"\naction = "allow"\n'
    assert rule in (yard.house.place.home / "config.toml").read_text()
    _, events = await yard.run(bash(adding(f"{data}/b")))
    assert only(events, "approval_requested") == []
    assert (data / "b").read_text() == "x\n"


async def test_only_the_file_is_opened_if_it_exists(yard, data):
    (data / "log").write_text("")
    talk, _ = await yard.open(*steps(adding(f"{data}/log"), adding(f"{data}/log"), f"touch {data}/beside"))
    asked = await asked_by(talk)
    assert asked["args"]["paths"] == [f"{data}/log"]
    assert f"refused to change the file {data}/log, outside" in asked["preview"]
    await decide(talk, asked, scope="session")
    asked = (await talk.until("approval_requested"))[-1]
    assert (asked["args"]["paths"], (data / "log").read_text()) == ([str(data)], "x\n")
    await decide(talk, asked, "deny")
    await talk.until("done")


async def test_what_a_person_has_denied_is_not_asked_again_in_the_same_run(yard, data):
    talk, _ = await yard.open(*steps(adding(f"{data}/a"), adding(f"{data}/b")))
    await decide(talk, await asked_by(talk), "deny", reason="that is mine")
    events = await talk.until("done")
    assert only(events, "approval_requested") == []
    first, second = results_of(events)
    assert "It stays refused: denied by the user: that is mine." in first
    assert "Another command cannot do it either" in second


SECRETS = {
    "a key": "echo x >> ~/.ssh/id",
    "a new file beside keys": "touch ~/.ssh/new",
    "a new file in the home": "touch ~/new",
    "the configuration of git": "git init -q . && echo x >> $PWD/.git/config",
    "something that succeeds in the end": "echo x >> ~/.bashrc; true",
    "a file of the kernel": "echo x > /proc/sys/kernel/hostname",
    "what is only said": "echo 'touch: /nowhere/at/all: Permission denied'; false",
    "a relative path": "cd ..; touch beside",
}


@pytest.mark.parametrize("command", SECRETS.values(), ids=SECRETS)
async def test_what_is_never_opened_is_not_asked_about(yard, command):
    [result], events = await yard.run(bash(command))
    assert only(events, "approval_requested") == []
    if "may not" in result:
        assert "Another command cannot do it either" in result


NONSENSE = {
    "a line break": r"touch $DATA/$'a\nb'",
    "no UTF-8": r"touch $DATA/$'\xff'/x $DATA/$'\xff'",
    "a long name": "touch $DATA/$(printf 'x%.0s' $(seq 4096))",
    "a long path": "touch $DATA$(printf '/%.0s' $(seq 4096))x",
    "a NUL in the output": r"printf 'touch: \0/var/tmp/x\0y: Permission denied\n'; false",
    "what steers a terminal": r"touch $DATA/$'\e[2J\u202e'/x",
}


@pytest.mark.parametrize("command", NONSENSE.values(), ids=NONSENSE)
async def test_nonsense_in_a_path_opens_no_more_than_a_directory_that_is_there(yard, data, command):
    talk, _ = await yard.open(*steps(f"DATA={data}; {command}"))
    await talk.ask("prompt", message="go")
    events = await talk.until("approval_requested", "done")
    if events[-1]["type"] == "approval_requested":
        assert events[-1]["args"]["paths"] == [str(data)]
        assert {"\x1b", "\u202e", "\xff"} & set(events[-1]["preview"]) == set()
        await decide(talk, events[-1])
        events += await talk.until("done")
    assert "failed inside zot" not in results_of(events)[0]


async def test_a_link_that_takes_the_place_of_a_grant_opens_nothing(yard, data):
    talk, _ = await yard.open(*steps(adding(f"{data}/a"), f"echo x >> {data}/.bashrc; echo x >> {yard.home}/.bashrc"))
    asked = await asked_by(talk)
    data.rmdir()
    data.symlink_to(yard.home)
    await decide(talk, asked, scope="session")
    asked = (await talk.until("approval_requested"))[-1]
    assert asked["args"]["paths"] == [f"{yard.home}/.bashrc"]
    await decide(talk, asked, "deny")
    await talk.until("done")
    assert (yard.home / ".bashrc").read_text() == "before"


async def test_two_clients_decide_at_once_and_the_first_one_wins(yard, data):
    talk, _ = await yard.open(*steps(adding(f"{data}/a")))
    asked = await asked_by(talk)
    second = await yard.house.connect(client={"name": "bob"})
    mine = talk.client.send("approve", session=talk.id, **about(asked))
    his = second.send("approve", session=talk.id, **about(asked), scope="session")
    answers = [await talk.client.answer_to(mine), await second.answer_to(his)]
    assert sorted(one["success"] for one in answers) == [False, True]
    [resolved] = only(await talk.until("done"), "approval_resolved")
    assert resolved["by"] == ("ann" if answers[0]["success"] else "bob")


async def test_an_abort_withdraws_the_question_and_keeps_what_the_command_printed(yard, data):
    talk, _ = await yard.open(*steps(f"echo walrus; {adding(f'{data}/a')}"))
    await asked_by(talk)
    await talk.ask("abort")
    events = await talk.until("done")
    assert only(events, "approval_resolved")[0]["decision"] == "cancelled"
    assert "walrus" in results_of(events)[0]
    assert (await talk.ask("approval.list"))["approvals"] == []


async def test_the_arguments_of_a_command_that_has_ended_cannot_be_changed(yard, data):
    talk, _ = await yard.open(*steps(adding(f"{data}/a")))
    asked = await asked_by(talk)
    assert await talk.refused("approve", **about(asked), args={"paths": ["/"], "command": ""}) == "bad_request"
    await talk.ask("abort")
    await talk.until("done")


async def test_without_a_client_that_can_decide_the_model_is_told(yard, data):
    await yard.configure('[approval]\nunattended = "deny"\n')
    server = await yard.model(*steps(adding(f"{data}/a")))
    talk = await yard.house.create("openai", server, None, mode="workspace", env=yard.env)
    events = await talk.run()
    assert only(events, "approval_requested") == []
    assert "Another command cannot do it either" in results_of(events)[0]


async def test_a_rule_denies_what_a_person_would_be_asked(yard, data):
    await yard.configure(f'[[rules]]\ntool = "files"\nmatch = "{data}/kept"\naction = "deny"\n')
    [result], events = await yard.run(bash(adding(f"{data}/a")))
    assert only(events, "approval_requested") == []
    assert f"It stays refused: a rule in config.toml denies it for {data}." in result


WAITING = "echo started; until [ -e go ]; do sleep 0.1; done; touch {}/new"


async def test_what_a_rule_has_opened_while_the_command_ran_is_not_asked_about(yard, data):
    talk, _ = await yard.open(*steps(WAITING.format(data), f"touch {data}/new"))
    await talk.ask("prompt", message="go")
    await talk.until("tool_progress")
    await yard.configure(f'[[rules]]\ntool = "files"\nmatch = "{data}"\naction = "allow"\n')
    (yard.work / "go").touch()
    events = await talk.until("done")
    assert only(events, "approval_requested") == []
    assert f"every command may change {data} and everything in it" in results_of(events)[0]
    assert (data / "new").exists()


async def test_a_session_that_has_left_the_mode_meanwhile_is_not_asked(yard, data):
    talk, _ = await yard.open(*steps(WAITING.format(data)))
    await talk.ask("prompt", message="go")
    await talk.until("tool_progress")
    await talk.ask("set_mode", mode="ask")
    (yard.work / "go").touch()
    events = await talk.until("done")
    assert only(events, "approval_requested") == []
    assert "Another command cannot do it either" in results_of(events)[0]


async def test_a_command_that_an_extension_has_run_is_asked_about_too(yard, data):
    shop = Shop(yard.house)
    shop.write("outer", '@ext.tool\nasync def outer(command: str) -> str:\n    """Calls."""\n'
               '    return (await ext.call_tool("bash", {"command": command})).text\n')  # fmt: skip
    outer = calls(CallPart("outer", {"command": adding(f"{data}/a")}))
    env = {**shop.env, **yard.env, "PATH": shop.env["PATH"]}
    talk, _ = await yard.open(outer, outer, text("done"), env=env)
    await decide(talk, await asked_by(talk), scope="session")  # of the tool of the extension
    asked = (await talk.until("approval_requested"))[-1]
    assert (asked["tool"], asked["args"]["paths"]) == ("files", [str(data)])
    await decide(talk, asked)
    events = await talk.until("done")
    assert only(events, "approval_requested") == []
    assert "this very command may change" in results_of(events)[0]
    assert ((data / "a").read_text(), (yard.work / "runs").read_text()) == ("x\n", "run\nrun\n")


async def test_a_rule_that_is_no_path_is_left_out_and_users_are_told(yard, data):
    await yard.configure('[[rules]]\ntool = "files"\nmatch = "data/*"\naction = "allow"\n')
    talk, _ = await yard.open(*steps("true"))
    notices = [one["text"] for one in only(await talk.run(), "notice")]
    assert any("is neither an absolute path nor one that begins with ~/" in one for one in notices)


@pytest.mark.timeout(180)  # two starts of a daemon
@pytest.mark.parametrize(
    ("number", "decision"), [(signal.SIGKILL, "allow"), (signal.SIGKILL, "deny"), (signal.SIGTERM, "allow")]
)
async def test_the_question_survives_a_restart_and_the_command_is_not_run_again(process, model, data, number, decision):
    needs("bwrap")
    server = await model(*steps(f"echo walrus; {adding(f'{data}/a')}"))
    client = await process.connect(client={"name": "ann"}, can_approve=True)
    talk = await process.create("openai", server, client, mode="workspace")
    asked = await asked_by(talk)
    process.restart(number)
    ben = await process.connect(client={"name": "ben"}, can_approve=True)
    listed = (await ben.ask("approval.list"))["approvals"]
    assert [one["approval"] for one in listed] == [asked["approval"]]
    again = await process.follow(
        talk.id, ben, after={"epoch": talk.epoch, "seq": asked["seq"]}, env={"PATH": process.place.env["PATH"]}
    )
    await again.ask("session.configure", secrets={"api_key": "sk-scripted-key"})
    await decide(again, asked, decision)
    events = await again.until("done")
    assert only(events, "approval_requested") == []
    [result] = results_of(events)
    assert "walrus" in result
    assert ("A person has allowed it" in result, "It stays refused: denied by the user" in result) == (
        decision == "allow",
        decision == "deny",
    )
    assert (process.cwd / "runs").read_text() == "run\n"


@pytest.mark.timeout(180)  # two starts of a daemon
async def test_a_prompt_instead_of_a_decision_gives_the_model_what_the_command_printed(process, model, data):
    needs("bwrap")
    server = await model(calls(CallPart(*bash(f"echo walrus; {adding(f'{data}/a')}"))), text("done"))
    client = await process.connect(client={"name": "ann"}, can_approve=True)
    talk = await process.create("openai", server, client, mode="workspace")
    asked = await asked_by(talk)
    process.restart(signal.SIGKILL)
    ben = await process.connect(client={"name": "ben"}, can_approve=True)
    again = await process.follow(
        talk.id, ben, after={"epoch": talk.epoch, "seq": asked["seq"]}, env={"PATH": process.place.env["PATH"]}
    )
    await again.ask("session.configure", secrets={"api_key": "sk-scripted-key"})
    await again.run("something else")
    told = str(server.requests[-1].messages)
    assert ("walrus" in told, "outcome unknown" in told) == (True, False)
    assert (await ben.ask("approval.list"))["approvals"] == []
    assert (process.cwd / "runs").read_text() == "run\n"


async def test_a_drain_does_not_wait_for_the_question(monkeypatch, model, user, data):
    async with opened(Mechanism.BUBBLEWRAP, monkeypatch, model, user, ZOT_LIMITS_DRAIN_S="3600") as yard:
        talk, _ = await yard.open(*steps(adding(f"{data}/a")))
        await asked_by(talk)
        os.kill(os.getpid(), signal.SIGTERM)
        await talk.client.rest()


async def test_a_drain_that_began_before_the_question_does_not_wait_for_it(monkeypatch, model, user, data):
    async with opened(Mechanism.BUBBLEWRAP, monkeypatch, model, user, ZOT_LIMITS_DRAIN_S="3600") as yard:
        talk, _ = await yard.open(*steps(WAITING.format(data)))
        await talk.ask("prompt", message="go")
        await talk.until("tool_progress")
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(20):
            while (await talk.client.ask("daemon.status"))["state"] != "stopping":
                pass
        (yard.work / "go").touch()
        await talk.client.rest()


@pytest.fixture
async def bubble(monkeypatch, model, user):
    async with opened(Mechanism.BUBBLEWRAP, monkeypatch, model, user) as yard:
        yield yard


async def test_hooks_of_a_repository_in_a_directory_that_was_opened_stay_closed(bubble, data):
    init = f"git init -q {data} && touch {data}/README"
    hook = f"echo x > {data}/.git/hooks/pre-commit"
    talk, _ = await bubble.open(*steps(adding(f"{data}/a"), init, hook))
    await decide(talk, await asked_by(talk), scope="session")
    events = await talk.until("done")
    assert only(events, "approval_requested") == []
    assert ((data / "README").exists(), (data / ".git/hooks/pre-commit").exists()) == (True, False)
