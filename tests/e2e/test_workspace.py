"""The mode `workspace` in a real daemon: calls run in a jail without a question, and a person decides at its border."""

import os
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.e2e.conftest import House, only
from tests.e2e.shop import Shop
from tests.needs import needs
from zotd.jail import MECHANISMS, Mechanism
from zotd.testing.live_daemon import serving
from zotd.testing.script import CallPart, calls, text

KEY = "a key that no command may read"


class Yard:
    """A user with secrets, and a daemon whose sessions are confined by one mechanism."""

    def __init__(self, house, model, mechanism):
        self.house = house
        self.mechanism = mechanism
        self.work = house.cwd
        self.home = Path(house.place.env["HOME"])
        self.model = model

    @property
    def env(self):
        tmp = str(self.house.place.folder / "tmp")
        return {"PATH": os.defpath, "HOME": str(self.home), "TMPDIR": tmp}

    async def open(self, *answers, **options):
        """A session in the mode `workspace`, followed by a client that can decide, and its model."""
        server = await self.model(*answers)
        client = await self.house.connect(client={"name": "ann"}, can_approve=True)
        options = {"mode": "workspace", "env": self.env} | options
        return await self.house.create("openai", server, client, **options), server

    async def configure(self, text):
        """Have the daemon use this configuration."""
        (self.house.place.home / "config.toml").write_text(text)
        admin = await self.house.connect(role="admin")
        await admin.ask("daemon.reload")

    async def run(self, *steps, **options):
        """Have the model make these calls, one after the other, and deny what is asked; the results, as text, and all events."""
        talk, _ = await self.open(*(calls(CallPart(*step)) for step in steps), text("done"), **options)
        await talk.ask("prompt", message="go")
        events = await talk.until("approval_requested", "done")
        while events[-1]["type"] != "done":
            await decide(talk, events[-1], "deny")
            events += await talk.until("approval_requested", "done")
        return results_of(events), events


def results_of(events):
    return [one["content"][0]["text"] for one in only(events, "tool_result")]


@pytest.fixture
def user():
    """A home with a key in it; not in the temporary directory, which commands may change."""
    with TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name).resolve()
        for path in ("user/.ssh", "user/.cache", "tmp", "work"):
            (folder / path).mkdir(parents=True)
        (folder / "user/.ssh/id").write_text(KEY)
        (folder / "user/.bashrc").write_text("before")
        yield folder


@asynccontextmanager
async def opened(mechanism, monkeypatch, model, user, **extra):
    """A yard whose commands are confined by this mechanism; `extra`: variables of its daemon."""
    if mechanism is Mechanism.BUBBLEWRAP:
        needs("bwrap")
    else:
        monkeypatch.setenv("PATH", "/nowhere")  # of the daemon, which looks for bwrap there
    monkeypatch.setenv("HOME", str(user / "user"))
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(serving(user, extra))
        yield Yard(House(stack, place), model, mechanism)


@pytest.fixture(params=MECHANISMS)
async def yard(request, monkeypatch, model, user):
    async with opened(request.param, monkeypatch, model, user) as yard:
        yield yard


def write(path, content="x"):
    return "write", {"path": str(path), "content": content}


def bash(command):
    return "bash", {"command": command}


async def asked_by(talk):
    await talk.ask("prompt", message="go")
    return (await talk.until("approval_requested"))[-1]


async def decide(talk, event, decision="allow", **fields):
    about = {"approval": event["approval"], "args_digest": event["args_digest"], "decision": decision}
    await talk.ask("approve", **about, **fields)


# --- inside ---------------------------------------------------------------------------------------------------------


async def test_work_inside_the_workspace_runs_without_a_question(yard):
    steps = (
        *(write("a/b.txt", "one\n"), ("edit", {"path": "a/b.txt", "edits": [{"oldText": "one", "newText": "two"}]})),
        *(("read", {"path": "a/b.txt"}), ("grep", {"pattern": "two"}), ("glob", {"pattern": "**/*.txt"})),
        *(bash("cat a/b.txt; echo x > $TMPDIR/f; echo x > ~/.cache/f; cat ~/.bashrc; echo y > made"),),
    )
    results, events = await yard.run(*steps)
    assert only(events, "approval_requested") == []
    assert len(only(events, "notice")) == (yard.mechanism is Mechanism.LANDLOCK)  # it cannot tell hosts apart
    assert [one["is_error"] for one in only(events, "tool_result")] == [False] * len(steps)
    assert results[2] == "two\n"
    assert results[3] == "a/b.txt:1:two"
    assert "two\nbefore" in results[-1]
    assert (yard.work / "made").read_text() == "y\n"


OUTSIDE = {
    "a file of the home": "echo x > ~/.bashrc",
    "through a link": "ln -s ~ out; echo x > out/.bashrc",
    "a file beside": "touch ../beside",
    "a secret": "cat ~/.ssh/id",
    "a secret through a link": "ln -s ~/.ssh keys; cat keys/id",
    "a secret through /proc": "cat /proc/self/root$HOME/.ssh/id",
}


@pytest.mark.parametrize("command", OUTSIDE.values(), ids=OUTSIDE)
async def test_bash_does_not_get_out(yard, command):
    [result], events = await yard.run(bash(command))
    assert [one["args"]["paths"] for one in only(events, "approval_requested")] in ([], [[f"{yard.home}/.bashrc"]])
    assert KEY not in result
    assert "[exit 1]" in result
    assert ((yard.home / ".bashrc").read_text(), (yard.work.parent / "beside").exists()) == ("before", False)


async def test_the_model_is_told_what_the_jail_has_refused(yard):
    [changed, hidden, other], _ = await yard.run(bash("echo x > ~/.bashrc"), bash("cat ~/.ssh/id"), bash("cat /absent"))
    assert f"It may not: change {yard.home}/.bashrc." in changed
    assert "run the command with !" in changed
    assert f"It may not: read {yard.home}/.ssh/id." in hidden
    assert "jail" not in other


@pytest.mark.parametrize("end", ["", "; exit 1", "; sleep 60"])
async def test_a_file_that_leads_git_to_another_configuration_is_renamed(yard, end):
    command = f"echo ../other > .git/commondir{end}"
    [_, result], _ = await yard.run(bash("git init -q"), ("bash", {"command": command, "timeout": 2}))
    pointer = yard.work / ".git/commondir"
    assert f"It may not: make {pointer}, by which git would read another configuration" in result
    assert not pointer.exists()
    assert pointer.with_suffix(".set-aside").read_text() == "../other\n"


async def test_with_bubblewrap_a_command_does_not_reach_the_daemon(yard):
    connect = f"import socket; socket.socket(socket.AF_UNIX).connect({yard.house.place.socket!r}); print('rea' 'ched')"
    talk, _ = await yard.open(calls(CallPart(*bash(f'python3 -c "{connect}"'))), text("done"))
    [result] = results_of(await talk.run())
    assert ("reached" in result) == ((await talk.ask("session.get"))["jail"] == "landlock")


async def test_a_job_is_confined_like_any_command_and_the_model_is_told_what_it_was_refused(yard):
    command = "echo y > made; cat ~/.ssh/id; echo x > ~/.bashrc"
    begin = "bash", {"command": command, "background": True}
    talk, server = await yard.open(calls(CallPart(*begin)), calls(CallPart("job_wait", {"job": "j1"})), text("done"))
    _, waited = results_of(await talk.run())
    assert KEY not in waited
    assert ((yard.work / "made").read_text(), (yard.home / ".bashrc").read_text()) == ("y\n", "before")
    (found,) = (await talk.ask("session.jobs"))["jobs"]
    assert (found["state"], found["exit"]) == ("ended", 1)
    assert f"The jail of this session has refused something to it. It may not: read {yard.home}/.ssh/id" in str(
        server.requests[2].messages
    )


async def test_a_search_of_the_home_leaves_secrets_out(yard):
    steps = ("grep", {"pattern": ".", "path": "~"}), ("glob", {"pattern": "**", "path": "~", "hidden": True})
    (yard.home / "notes.txt").write_text("walrus\n")
    (yard.home / "shown").symlink_to(yard.home / ".ssh/id")
    [found, names], events = await yard.run(*steps)
    assert only(events, "approval_requested") == []
    assert "walrus" in found
    assert KEY not in found
    assert (".ssh/id" in names, "shown" in names, ".bashrc" in names) == (False, False, True)


async def test_long_output_can_be_read_and_searched(yard):
    talk, _ = await yard.open(calls(CallPart(*bash("seq 100000"))), text("done"))
    [result] = results_of(await talk.run())
    path = result.partition("all of it is in ")[2].partition(" ")[0]
    steps = ("grep", {"pattern": "^77777$", "path": path}), ("read", {"path": path, "offset": 5, "limit": 1})
    again, _ = await yard.open(*(calls(CallPart(*step)) for step in steps), text("done"))
    assert (await asked_by(again))["tool"] == "grep"  # the output of another session is hidden
    await again.ask("abort")
    await again.until("done")
    server = await yard.model(*(calls(CallPart(*step)) for step in steps), text("done"))
    await talk.ask("session.configure", base_url=server.openai_url, secrets={"api_key": "sk-scripted-key"})
    found = results_of(await talk.run())
    assert [one.splitlines()[0].rpartition(":")[2] for one in found] == ["77777", "5"]


async def test_a_person_s_own_command_is_not_confined(yard):
    talk, _ = await yard.open(text("done"))
    await talk.ask("shell", command="echo mine > ~/.bashrc; cat ~/.ssh/id")
    [message] = only(await talk.until("done"), "user_message")
    assert KEY in message["content"][0]["text"]
    assert (yard.home / ".bashrc").read_text() == "mine\n"


async def test_a_command_that_an_extension_has_run_is_confined_too(yard):
    shop = Shop(yard.house)
    shop.write("outer", '@ext.tool\nasync def outer(name: str, args: dict) -> str:\n    """Calls."""\n'
               "    return (await ext.call_tool(name, args)).text\n")  # fmt: skip
    call = CallPart("outer", {"name": "bash", "args": {"command": "echo x > ~/.bashrc; echo here > made"}})
    talk, _ = await yard.open(calls(call), text("done"), env={**shop.env, **yard.env, "PATH": shop.env["PATH"]})
    asked = await asked_by(talk)
    assert asked["tool"] == "outer"  # no jail is around an extension
    await decide(talk, asked)
    [result] = results_of(await talk.until("done"))
    assert f"It may not: change {yard.home}/.bashrc" in result
    assert ((yard.work / "made").read_text(), (yard.home / ".bashrc").read_text()) == ("here\n", "before")


# --- the border -----------------------------------------------------------------------------------------------------


async def test_a_write_through_a_link_that_leads_out_waits_for_a_person(yard):
    (yard.work / "way").symlink_to(yard.home)
    talk, _ = await yard.open(calls(CallPart(*write("way/.bashrc", "after"))), text("done"))
    asked = await asked_by(talk)
    assert asked["preview"].startswith(f"write needs a person's approval: it would change {yard.home}/.bashrc, outside")
    assert (yard.home / ".bashrc").read_text() == "before"
    await decide(talk, asked, "deny")
    await talk.until("done")
    assert (yard.home / ".bashrc").read_text() == "before"


async def test_what_is_allowed_once_is_done_once_with_that_path_only(yard):
    paths = [yard.home / "notes", yard.home / "notes", yard.home / "other"]
    talk, _ = await yard.open(*(calls(CallPart(*write(path, f"{n}"))) for n, path in enumerate(paths)), text("done"))
    await decide(talk, await asked_by(talk))
    for _ in paths[1:]:
        asked = (await talk.until("approval_requested"))[-1]
        assert (yard.home / "notes").read_text() == "0"
        await decide(talk, asked, "deny")
    await talk.until("done")
    assert not (yard.home / "other").exists()


async def test_what_is_allowed_for_the_session_is_not_asked_again(yard):
    steps = write(yard.home / "notes", "1"), write(yard.home / "notes", "2"), ("read", {"path": "~/.ssh/id"})
    talk, _ = await yard.open(*(calls(CallPart(*step)) for step in steps), text("done"))
    await decide(talk, await asked_by(talk), scope="session")
    asked = (await talk.until("approval_requested"))[-1]
    assert (asked["tool"], (yard.home / "notes").read_text()) == ("read", "2")
    await decide(talk, asked)
    assert results_of(await talk.until("done"))[-1] == KEY


async def test_what_is_always_allowed_is_a_rule_for_all_sessions(yard):
    talk, _ = await yard.open(calls(CallPart(*write(yard.home / "notes", "1"))), text("done"))
    await decide(talk, await asked_by(talk), scope="always")
    await talk.until("notice")
    _, events = await yard.run(write(yard.home / "notes", "2"), write(yard.home / "notes", "3"))
    assert only(events, "approval_requested") == []
    assert (yard.home / "notes").read_text() == "3"


async def test_a_hidden_directory_is_searched_when_a_person_allows_it(yard):
    talk, _ = await yard.open(calls(CallPart("grep", {"pattern": "key", "path": "~/.ssh"})), text("done"))
    await decide(talk, await asked_by(talk))
    assert KEY in results_of(await talk.until("done"))[0]


@pytest.mark.parametrize("path", ["hooks/pre-commit", "config"])
async def test_what_git_runs_is_beyond_the_border_also_in_a_repository_that_a_command_has_made(yard, path):
    made = calls(CallPart(*bash("git init -q . && mkdir -p .git/hooks")))
    talk, _ = await yard.open(made, calls(CallPart(*write(f".git/{path}"))), text("done"))
    assert (await asked_by(talk))["args"]["path"] == f".git/{path}"
    await talk.ask("abort")
    await talk.until("done")


async def test_git_commits(yard):
    identity = "git -c user.name=a -c user.email=a@example.org"
    commit = f"echo x >> f; git add f && {identity} commit -qm"
    [_, result], _ = await yard.run(
        bash(f"git init -q . && {commit} first"), bash(f"{commit} second && git log --format=%s")
    )
    assert "second\nfirst\n" in result


# --- rules and modes ------------------------------------------------------------------------------------------------


async def test_rules_come_first_and_what_a_person_allows_of_them_stays_in_the_jail(yard):
    rule = '[[rules]]\ntool = "bash"\nmatch = "{}"\naction = "{}"\n'
    await yard.configure(rule.format("rm *", "deny") + rule.format("echo *", "ask"))
    talk, _ = await yard.open(
        calls(CallPart(*bash("rm a"))), calls(CallPart(*bash("echo x > ~/.bashrc"))), text("done")
    )
    asked = await asked_by(talk)
    assert asked["args"]["command"] == "echo x > ~/.bashrc"
    await decide(talk, asked)
    await decide(talk, (await talk.until("approval_requested"))[-1], "deny")
    [result] = results_of(await talk.until("done"))
    assert "It may not: change" in result
    assert (yard.home / ".bashrc").read_text() == "before"


async def test_the_mode_can_be_left_and_entered_between_two_calls(yard):
    beyond = [calls(CallPart(*bash(f"echo {n} > ~/{n}"))) for n in range(3)]
    replies = [reply for one in beyond for reply in (one, text("done"))]
    talk, _ = await yard.open(*replies)
    await talk.run()
    for mode in ("yolo", "workspace"):
        await talk.ask("set_mode", mode=mode)
        await talk.run()
    assert [n for n in range(3) if (yard.home / str(n)).exists()] == [1]


async def test_without_the_network_no_server_is_reached(yard):
    await yard.configure('[sandbox]\nnetwork = "off"\n')
    server = await yard.model(text("x"))
    host, _, port = server.url.removeprefix("http://").partition(":")
    [result], _ = await yard.run(bash(f"echo > /dev/tcp/{host}/{port.partition('/')[0]} && echo rea''ched"))
    assert "reached" not in result


async def test_the_session_names_the_mechanism(yard, request):
    talk, _ = await yard.open(calls(CallPart(*bash("true"))), text("done"))
    assert (await talk.ask("session.get")).get("jail") is None
    await talk.run()
    assert (await talk.ask("session.get"))["jail"] in request.node.name


# --- no jail --------------------------------------------------------------------------------------------------------


async def test_where_no_jail_is_possible_the_session_says_so_once_and_asks(yard):
    talk, _ = await yard.open(calls(CallPart(*bash("echo 1"))), calls(CallPart(*bash("echo 2"))), cwd=str(yard.home))
    await talk.ask("prompt", message="go")
    events = await talk.until("approval_requested")
    [notice] = only(events, "notice")
    assert notice["level"] == "warn"
    assert notice["text"].startswith("nothing can be confined here, so calls are asked about as in the mode ask")
    assert "is your home directory" in notice["text"]
    await decide(talk, events[-1])
    again = await talk.until("approval_requested")
    [notice] = only(again, "notice")  # of another matter: these files are not recorded
    assert "contains your home directory" in notice["text"]
    assert (await talk.ask("session.get"))["jail"].startswith("none: ")


async def test_a_working_directory_that_is_a_link_is_not_confined_and_says_why(yard):
    (yard.home / "link").symlink_to(yard.work)
    talk, _ = await yard.open(calls(CallPart(*bash("echo 1"))), cwd=str(yard.home / "link"))
    await talk.ask("prompt", message="go")
    assert "leads through a link" in only(await talk.until("approval_requested"), "notice")[0]["text"]
