"""Clients of another machine over ssh: real programs, the real daemon, a real sshd."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack

import pytest

from tests.client.ssh_host import SSHD, SshHost
from tests.needs import needs
from tests.zottui.tmux import Tmux
from zotd.client.client import Client
from zotd.client.errors import ClientError
from zotd.client.ssh import parsed
from zotd.testing import warm
from zotd.testing.live_daemon import ROOT, DaemonProcess
from zotd.testing.script import Hang, ScriptedReply, TextPart, text

WAIT_S = 60

pytestmark = pytest.mark.timeout(240)


class There:
    """The machine `box` with a daemon, and a home here that knows nothing but how ssh reaches it."""

    def __init__(self, folder):
        self.folder = folder
        self.daemon = DaemonProcess(folder)
        self.box = SshHost(folder / "ssh", {**self.daemon.place.env, "PYTHONPATH": str(ROOT)})
        self.cwd = str(self.daemon.place.cwd)
        self.env = {
            "PATH": f"{self.box.bin}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder / "here"),
            "ZOT_HOME": str(folder / "here" / "zot"),
            "TERM": "xterm-256color",
        }
        (folder / "here").mkdir()

    def run(self, module, *args, code=0):
        """A program of a client, here; what it prints."""
        done = subprocess.run(
            warm.command(module, *map(str, args)),
            env=self.env,
            cwd=self.folder / "here",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    def model(self, server):
        """Flags for a session that talks to the scripted model."""
        return ["--cwd", self.cwd, "--provider", "openai", "--base-url", server.openai_url, "--api-key", "sk-scripted"]


@pytest.fixture
def there(tmp_path):
    needs(SSHD, "ssh", "ssh-keygen")
    here = There(tmp_path)
    with ExitStack() as stack:
        stack.enter_context(here.box.running())
        yield here
        if here.daemon.pid:
            here.daemon.end(signal.SIGKILL)


async def test_every_program_works_and_the_daemon_there_is_started(there, model):
    server = await model(text("It is a shop."))
    said = await asyncio.to_thread(there.run, "zotd.cli", "--host", "box", "-p", "what is this?", *there.model(server))
    assert said == "It is a shop.\n"
    (listed,) = json.loads(there.run("zotctl", "--host", "ssh://box", "sessions", "--json"))["sessions"]
    assert listed["cwd"] == there.cwd
    assert there.run("zotctl", "--host", "box", "ping") == "pong\n"
    assert not (there.folder / "here" / "zot" / "zot.db").exists()
    assert there.run("zotctl", "--host", "box", "stop") == "zotd has stopped\n"
    assert there.run("zotctl", "--host", "box", "ping", code=1).startswith("zotctl: box: zotd is not running")


async def test_a_chat_is_opened_by_the_names_of_the_machine_and_of_the_session(there, model):
    server = await model(text("One."), text("Two."))
    there.daemon.start()
    flags = ["-p", "first", *there.model(server)]
    await asyncio.to_thread(there.run, "zotd.cli", "--host", "box", *flags)
    (listed,) = json.loads(there.run("zotctl", "--host", "box", "sessions", "--json"))["sessions"]
    there.run("zotctl", "--host", "box", "rename", listed["id"], "tests")
    with Tmux([sys.executable, "-m", "zotd.cli", "box:tests"], folder=there.folder / "here", env=there.env) as screen:
        await asyncio.to_thread(screen.wait, r"One\.")
        screen.type("second")
        screen.key("Enter")
        await asyncio.to_thread(screen.wait, r"Two\.")
        there.box.cut()
        screen.type("!echo back-$((40 + 2))")
        screen.key("Enter")
        await asyncio.to_thread(screen.wait, "back-42")


async def test_ctrl_c_aborts_the_run_there(there, model):
    server = await model(ScriptedReply([TextPart(["Once "]), Hang()]))
    there.daemon.start()
    command = [sys.executable, "-m", "zotd.cli", "--host", "box", "-p", "go", *there.model(server)]
    running = await asyncio.create_subprocess_exec(
        *command, env=there.env, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL, process_group=0
    )
    await server.received(1)
    os.killpg(running.pid, signal.SIGINT)
    async with asyncio.timeout(WAIT_S):
        assert await running.wait() == 130
    async with Client.connect(path=there.daemon.place.socket, env=there.daemon.place.env) as client:
        (session,) = await client.sessions()
        assert session.state == "idle"


async def test_a_client_of_python_uses_it(there, monkeypatch):
    monkeypatch.setenv("PATH", there.env["PATH"])
    there.daemon.start()
    async with Client.connect(env=there.env, host="box") as client:
        assert await client.sessions() == []


def test_what_keeps_ssh_from_connecting_is_told_in_one_sentence(there):
    there.box.remove()
    assert there.run("zotctl", "--host", "box", "sessions", code=1) == (
        "zotctl: box has no zotctl; install zotd there\n"
    )
    there.box.known.write_text("")
    assert there.run("zotctl", "--host", "box", "sessions", code=1) == (
        "zotctl: ssh box has failed, and must work without a password: Host key verification failed.\n"
    )
    refused = there.run("zotctl", "--host", "nowhere.invalid", "sessions", code=1)
    assert refused.startswith(
        "zotctl: ssh nowhere.invalid has failed, and must work without a password: ssh: Could not"
    )
    assert "must be HOST" in there.run("zotctl", "--host", "-oProxyCommand=touch x", "sessions", code=1)
    assert not (there.folder / "here" / "x").exists()


@pytest.mark.parametrize(
    "words", ["", "-v", "ssh://-v", "a b", "box:22", "ssh://box/x", "ssh://box:x", "ssh://u:p@box"]
)
def test_what_is_no_host_is_refused(words):
    with pytest.raises(ClientError, match="--host"):
        parsed(words)


@pytest.mark.parametrize(
    ("words", "destination", "port"),
    [("box", "box", None), ("me@box", "me@box", None), ("ssh://me@box.example:2222", "me@box.example", 2222)],
)
def test_a_host_is_a_name_or_a_url(words, destination, port):
    host = parsed(words)
    assert (host.destination, host.port) == (destination, port)
