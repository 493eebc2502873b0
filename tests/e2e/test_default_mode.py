"""The mode of sessions for which no mode was chosen, at the command line and over stdio, and the warning about `yolo`."""

import asyncio
import json
import signal
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from zotd.client.blocking import connect
from zotd.client.fields import children, text
from zotd.client.yolo_warning import WARNING
from zotd.testing import warm
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.model_server import ModelServer
from zotd.testing.script import CallPart, calls
from zotd.testing.script import text as reply

WARNED = f"zot: {WARNING}\n"

YOLO = '[approval]\nmode = "yolo"\n'

DONE = (reply("done"),)

PROMPT = json.dumps({"type": "prompt", "message": "go"}) + "\n"


class Person:
    """A user whose home is not in the temporary directory, which commands in a jail may change, with a daemon."""

    def __init__(self, folder):
        (folder / "tmp").mkdir()
        # Empty: unset, although `live_daemon.place` sets it for the tests about something else.
        self.daemon = DaemonProcess(folder, {"TMPDIR": str(folder / "tmp"), "ZOT_APPROVAL_MODE": ""}, warns=True)
        self.daemon.place.home.mkdir(mode=0o700)
        self.env = {**self.daemon.place.env, "OPENAI_API_KEY": "sk-scripted-key"}
        self.cwd = self.daemon.place.cwd
        self.home = Path(self.env["HOME"])

    def configure(self, content):
        """Write `config.toml`, which the next start reads."""
        (self.daemon.place.home / "config.toml").write_text(content)

    async def zot(self, *words, says=DONE, piped="", **variables):
        """Run `zot` against a model that says this; the exit code, standard output and standard error."""
        async with ModelServer(says) as server:
            command = warm.command("zotd.cli", *words, "--provider=openai", f"--base-url={server.openai_url}")
            pipe = asyncio.subprocess.PIPE
            program = await asyncio.create_subprocess_exec(
                *command, cwd=self.cwd, env={**self.env, **variables}, stdin=pipe, stdout=pipe, stderr=pipe
            )
            out, err = await program.communicate(piped.encode())
        return program.returncode, out.decode(), err.decode()

    @property
    def modes(self):
        """The modes of all stored sessions, newest first."""
        with connect(self.daemon.place.socket) as connection:
            return [text(one, "mode") for one in children(connection.call("session.list"), "sessions")]


@pytest.fixture
def user():
    with TemporaryDirectory(dir="/var/tmp") as name:
        yield Person(Path(name).resolve())


@pytest.fixture
def person(user):
    """The same whose daemon runs."""
    with user.daemon:
        yield user


def bash(command):
    return calls(CallPart("bash", {"command": command}))


async def test_a_new_session_works_in_its_directory_and_changes_nothing_else(person):
    command = "echo x > made; echo x > ~/.bashrc"
    code, out, err = await person.zot("-p", "go", says=[bash(command), reply("done")])
    assert (code, out, err) == (0, "done\n", "")
    assert person.modes == ["workspace"]
    assert ((person.cwd / "made").exists(), (person.home / ".bashrc").exists()) == (True, False)


async def test_without_a_person_what_leads_out_is_denied_and_the_run_goes_on(person):
    step = calls(CallPart("write", {"path": str(person.home / ".bashrc"), "content": "x"}))
    code, out, _ = await person.zot("--json", "go", says=[step, reply("then not")])
    events = [json.loads(line) for line in out.splitlines()]
    [result] = [one for one in events if one["type"] == "tool_result"]
    assert code == 0
    assert "needs a person's approval: it would change" in result["content"][0]["text"]
    assert [one["type"] for one in events][-1] == "done"
    assert not (person.home / ".bashrc").exists()


async def test_where_no_jail_is_possible_a_command_is_denied_and_the_reason_is_told(person):
    code, out, err = await person.zot(
        "-p", "go", "--cwd", str(person.home), says=[bash("echo x > made"), reply("then not")]
    )
    assert (code, out) == (0, "then not\n")
    assert err.count("zot: nothing can be confined here, so calls are asked about as in the mode ask:") == 1
    assert not (person.home / "made").exists()


@pytest.mark.parametrize("flags", [["--mode", "yolo"], ["-y"]], ids=" ".join)
async def test_a_flag_for_yolo_warns_on_standard_error_each_time(person, flags):
    for _ in range(2):
        assert await person.zot("-p", "go", *flags) == (0, "done\n", WARNED)
    assert person.modes == ["yolo", "yolo"]


async def test_a_configuration_with_yolo_warns_once(user):
    user.configure(YOLO)
    with user.daemon:
        assert [await user.zot("-p", "go") for _ in range(2)] == [(0, "done\n", WARNED), (0, "done\n", "")]
        assert user.modes == ["yolo", "yolo"]


async def test_with_json_standard_output_has_no_warning(person):
    _, out, err = await person.zot("--json", "go", "-y")
    assert err == WARNED
    assert "notice" not in {json.loads(line)["type"] for line in out.splitlines()}
    assert "WARNING" not in out


async def test_a_stored_session_keeps_its_mode_when_the_configuration_changes(user):
    user.configure(YOLO)
    with user.daemon:
        await user.zot("-p", "go")
        user.configure("")
        user.daemon.end(signal.SIGTERM)
        user.daemon.start()
        step = bash("echo x > ~/made")
        assert await user.zot("-p", "--continue", "go", says=[step, reply("done")]) == (0, "done\n", "")
        assert (user.home / "made").exists()
        await user.zot("-p", "--new", "go")
        assert user.modes == ["workspace", "yolo"]


CHOICES = {
    "none": ("", (), {}, True),
    "a flag": ("", ("--mode=workspace",), {}, False),
    "the environment": ("", (), {"ZOT_APPROVAL_MODE": "workspace"}, False),
    "the configuration": ('[approval]\nmode = "workspace"\n', (), {}, False),
    "a flag against the configuration": ('[approval]\nmode = "workspace"\n', ("--mode=yolo",), {}, True),
}


@pytest.mark.parametrize(("config", "flags", "variables", "is_free"), CHOICES.values(), ids=CHOICES)
async def test_rpc_runs_everything_unless_a_mode_is_chosen(user, config, flags, variables, is_free):
    user.configure(config)
    says = [bash("echo x > ~/made"), reply("done")]
    code, out, err = await user.zot("rpc", *flags, says=says, piped=PROMPT, **variables)
    assert (code, err) == (0, "")
    assert json.loads(out.splitlines()[-1]) == {"type": "done"}
    assert (user.home / "made").exists() == is_free


async def test_rpc_refuses_an_unknown_mode(user):
    code, out, err = await user.zot("rpc", "--mode=none")
    assert (code, out) == (2, "")
    assert "invalid choice: 'none'" in err
