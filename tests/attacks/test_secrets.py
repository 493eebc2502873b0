"""What nobody may read, and what an extension must not get."""

import json
import os
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.e2e.conftest import House
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.script import CallPart, calls, text


def secret(number):
    """None looks like a key, nor stands beside a word that says so: nothing masks it, and it has to be kept out."""
    return f"seed{number:02}-walrus-marble-quince"


SECRETS = [secret(number) for number in range(20)]

DAEMON_ENV = {
    "ANTHROPIC_API_KEY": secret(0),
    "ZOTCORE_RPC_TOKEN": secret(1),
    "AWS_SECRET_ACCESS_KEY": secret(2),
    "DATABASE_URL": f"postgres://me:{secret(3)}@localhost/db",
    "ZOT_LOG_LEVEL": "debug",
}

CLIENT_ENV = {
    "PATH": os.environ["PATH"],
    "OPENAI_API_KEY": secret(4),
    "GITHUB_TOKEN": secret(5),
    "ZOT_X_TOKEN": secret(6),
    "HARMLESS": secret(7),
}

BRIDGE = {"mcpServers": {"x": {"command": "/no/such", "args": [secret(8)], "env": {"TOKEN": secret(9)}}}}


@pytest.fixture
async def seeded(tmp_path):
    """A daemon that logs everything, with secrets in its environment and its files."""
    daemon = DaemonProcess(tmp_path, DAEMON_ENV)
    home = daemon.place.home
    home.mkdir(mode=0o700)
    (home / "mcp.json").write_text(json.dumps(BRIDGE))
    (home / "auth.json").touch(mode=0o600)
    (home / "auth.json").write_text(json.dumps({"groq": {"api_key": secret(10)}}))
    async with AsyncExitStack() as stack:
        stack.enter_context(daemon)
        yield House(stack, daemon.place, daemon)


async def say_everything(house, model):
    """Have each of the other secrets go where it could get into a log; the client that did it."""
    client = await house.connect(role="admin", token=secret(11))
    server = await model(
        calls(CallPart("bash", {"command": f"echo {secret(12)}; env; exit 3"})),
        calls(CallPart("bash", raw=f'{{"command": "{secret(13)}')),
        text(secret(14)),
    )
    options = {"env": CLIENT_ENV, "secrets": {"api_key": secret(15)}}
    talk = await house.create("openai", server, client, **options)
    await talk.run(f"my password is {secret(16)}")
    await client.ask("auth.login", provider="groq", api_key=secret(17))
    client.write(b'{"type":"session.create","secrets":{"api_key":"%b"\n' % secret(18).encode())
    await client.refused("session.create", cwd="/no/such", secrets={"api_key": secret(19)})
    await talk.ask("session.configure", **options)
    return client


def written_by(house):
    """Its command line as others see it, and after its end its logs."""
    command_line = Path(f"/proc/{house.daemon.pid}/cmdline").read_text()
    house.daemon.end()
    logs = list((house.place.home / "logs").iterdir())
    assert house.place.home / "logs" / "zotd.log" in logs
    return [command_line, *(path.read_text() for path in [*logs, house.place.folder / "stderr"])]


async def test_twenty_secrets_appear_in_no_log_status_or_metric(seeded, model):
    client = await say_everything(seeded, model)
    asked = ("daemon.status", "daemon.metrics", "ext.list", "ext.doctor", "auth.list")
    looks = [json.dumps(await client.ask(command)) for command in asked]
    looks += written_by(seeded)
    assert [(one, look) for look in looks for one in SECRETS if one in look] == []


DESCRIPTORS = """
import os
inherited = [fd for fd in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + fd)]

@ext.command("inherited")
def show(args):
    return Display(" ".join(sorted(inherited)))
"""


async def test_an_extension_inherits_no_descriptor(shop, model):
    shop.write("curious", DESCRIPTORS)
    talk = await shop.open(await model(text("-")))
    said = await talk.ask("run_command", name="inherited")
    assert said["text"] == "0 1 2"
