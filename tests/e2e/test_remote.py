"""Clients of another machine: real programs, the real daemon, its real WebSocket with TLS."""

import asyncio
import json
import os
import subprocess
import sys
from contextlib import ExitStack

import psutil
import pytest

from tests.client.relay import authority
from tests.zottui.tmux import Tmux
from zotd.client.client import Client
from zotd.client.errors import CallError, ConnectionLostError
from zotd.testing import warm
from zotd.testing.live_daemon import ROOT, DaemonProcess, free_port
from zotd.testing.script import text

WAIT_S = 40

pytestmark = pytest.mark.timeout(240)
"""Each of the programs that a test starts may take its time on a slow machine."""


class There:
    """The other machine: a daemon with a door. And here: a home that knows its URL and its token, and nothing else."""

    def __init__(self, folder, stack):
        self.folder = folder
        port = free_port()
        self.url = f"wss://127.0.0.1:{port}"
        ca, certificate = authority(folder, "127.0.0.1")
        settings = ["[websocket]", f'listen = "127.0.0.1:{port}"']
        settings += [f'tls_cert = "{certificate}"', f'tls_key = "{certificate}"']
        self.env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder / "here"),
            "ZOT_HOME": str(folder / "here" / "zot"),
            "TERM": "xterm-256color",
            "ZOT_HOST": self.url,
            "ZOT_TOKEN_FILE": str(folder / "token"),
            "ZOT_CA_FILE": ca,
        }
        (folder / "here").mkdir()
        (folder / "zot").mkdir(mode=0o700)
        (folder / "zot" / "config.toml").write_text("\n".join(settings) + "\n")
        self.daemon = stack.enter_context(DaemonProcess(folder))
        self.cwd = str(self.daemon.place.cwd)
        self.give_token("here", "token")

    def run(self, module, *args, env=None, code=0, piped=""):
        """A program of a client, here; what it prints."""
        done = subprocess.run(
            warm.command(module, *map(str, args)),
            env=env or self.env,
            cwd=self.folder / "here",
            input=piped,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    def give_token(self, name, file):
        """Create a token, and write it into a file of the client."""
        created = ["token", "create", name, "--role", "admin", "--out", self.folder / file]
        self.run("zotctl", *created, env=self.daemon.place.env)

    def model(self, server):
        """Flags for a session that talks to the scripted model."""
        return ["--cwd", self.cwd, "--provider", "openai", "--base-url", server.openai_url, "--api-key", "sk-scripted"]


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    with ExitStack() as stack:
        yield There(tmp_path_factory.mktemp("there"), stack)


@pytest.fixture(autouse=True)
def nothing_left_behind(there):
    """But the daemon, which is the module's."""
    yield
    children = [child for child in psutil.Process().children() if child.pid != there.daemon.child]
    _, alive = psutil.wait_procs(children, WAIT_S)
    assert not alive


async def test_every_program_works_over_tls(there, model):
    server = await model(text("It is a shop."))
    assert there.run("zotctl", "ping") == "pong\n"
    status = json.loads(there.run("zotctl", "status", "--json"))
    assert (status["state"], status["pid"], status["socket"]) == ("running", there.daemon.pid, there.url)
    said = await asyncio.to_thread(there.run, "zotd.cli", "-p", "what is this?", *there.model(server))
    assert said == "It is a shop.\n"
    listed = json.loads(there.run("zotctl", "sessions", "--json"))["sessions"]
    assert [session["cwd"] for session in listed] == [there.cwd]
    frames = [{"type": "hello", "id": 1, "token": "for this process"}, {"type": "get_messages", "id": 2}]
    lines = "".join(json.dumps(frame) + "\n" for frame in frames)
    heard = map(json.loads, there.run("zotd.cli", "rpc", "--session", listed[0]["id"], piped=lines).splitlines())
    answers = [frame for frame in heard if frame["type"] == "response"]
    assert [answer["success"] for answer in answers] == [True, True]
    assert "It is a shop." in json.dumps(answers[1])


async def test_a_flag_goes_before_the_variable_and_a_token_stays_with_its_host(there):
    assert there.run("zotctl", "ping") == "pong\n"
    env = {**there.env, "ZOT_HOST": "wss://127.0.0.1:1"}
    assert there.run("zotctl", "ping", "--host", there.url, env=env) == "pong\n"
    assert "was not sent to 127.0.0.1:1" in there.run("zotctl", "sessions", env=env, code=1)
    (there.folder / "stranger").write_text("zot_" + "w" * 43)
    (there.folder / "stranger").chmod(0o600)
    stranger = {**there.env, "ZOT_TOKEN_FILE": str(there.folder / "stranger")}
    name = there.url.removeprefix("wss://")
    refused = there.run("zotctl", "ping", env=stranger, code=1)
    assert refused == f"zotctl: {name} refused the token: it may have expired or been revoked\n"
    log = there.daemon.log + refused
    assert "w" * 43 not in log


async def test_what_belongs_to_another_machine_is_not_done_here(there):
    needs = f"zot: a new session on {there.url} needs a directory of that machine; add --cwd /path\n"
    assert there.run("zotd.cli", "-p", "hi", code=1) == needs
    assert "is not an absolute path" in there.run("zotd.cli", "-p", "hi", "--cwd", ".", code=1)
    assert "--trust works only on this machine" in there.run("zotd.cli", "-p", "hi", "--cwd", "/", "--trust", code=1)
    assert "run it on the machine of" in there.run("zotctl", "backup", "copy.db", code=1)
    assert "run it on the machine of" in there.run("zotctl", "restart", code=1)
    assert "--session" in there.run("zotd.cli", "rpc", code=2)
    there.daemon.end()
    assert "nothing listens at" in there.run("zotctl", "sessions", code=1)  # and none is started, here or there
    assert json.loads(there.run("zotctl", "stop", "--json")) == {"v": 1, "state": "stopped"}
    assert not (there.folder / "here" / "zot" / "zot.db").exists()
    there.daemon.start()


async def test_the_terminal_comes_back_after_the_daemon_was_restarted(there, model):
    server = await model(text("One."))
    command = [sys.executable, "-m", "zotd.cli", "--new", *there.model(server)]
    with Tmux(command, folder=there.folder / "here", env=there.env) as screen:
        await asyncio.to_thread(screen.wait, "openai/")
        screen.type("first")
        screen.key("Enter")
        await asyncio.to_thread(screen.wait, r"One\.")
        await asyncio.to_thread(there.daemon.end)
        await asyncio.to_thread(there.daemon.start)
        screen.type("!echo back-$((40 + 2))")
        screen.key("Enter")
        await asyncio.to_thread(screen.wait, "back-42")


async def test_a_token_that_is_revoked_ends_the_client(there):
    there.give_token("guest", "guest")
    env = {**there.env, "ZOT_TOKEN_FILE": str(there.folder / "guest")}
    async with Client.connect(env=env) as client:
        assert client.hello.role == "approve"
        with client.connection.feed(None) as feed:
            there.run("zotctl", "token", "revoke", "guest", env=there.daemon.place.env)
            with pytest.raises(ConnectionLostError):
                await feed.batch()
    with pytest.raises(CallError, match="refused the token"):
        async with Client.connect(env=env):
            pass
