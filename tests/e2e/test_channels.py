"""The built-in Telegram channel in a real daemon, with the commands that people type."""

import asyncio
import json
import os
import subprocess

from tests.e2e.shop import until_state
from tests.needs import needs
from zotd.testing import warm
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.script import CallPart, calls, text
from zotd.testing.telegram_server import TOKEN, USER, TelegramServer


def configure(home, telegram, server):
    """A home whose bot token and key work, with models of `server`."""
    home.mkdir(0o700)
    (home / "config.toml").write_text(
        f'provider = "openai"\nmodel = "gpt-5"\n[providers.openai]\nbase_url = "{server.openai_url}"\n'
        f'[channels.telegram]\nenabled = true\nbase_url = "{telegram.url}"\n'
    )
    auth = home / "auth.json"
    auth.write_text(json.dumps({"openai": {"api_key": "sk-scripted-key"}, "telegram": {"api_key": TOKEN}}))
    auth.chmod(0o600)


async def pair(daemon, telegram):
    """Let the sender in, as a person with a shell does."""
    await telegram.write("hello?")
    code = str((await telegram.said(1))[0]["text"]).split()[-1]
    paired = await zotctl(daemon, "channel", "pair", code)
    assert paired.returncode == 0, paired.stderr
    await telegram.said(2)


async def test_a_sender_is_let_in_with_a_code_and_gets_answers(tmp_path, model):
    server = await model(text("Hello from afar."))
    home = tmp_path / "zot"
    async with TelegramServer() as telegram:
        configure(home, telegram, server)
        with DaemonProcess(tmp_path) as daemon:
            await pair(daemon, telegram)
            await telegram.write("hello!")
            assert (await telegram.said(3))[2]["text"] == "Hello from afar."
            listed = json.loads((await zotctl(daemon, "channel", "list", "--json")).stdout)
            assert [(one["channel"], one["sender"]) for one in listed["paired"]] == [("telegram", str(USER))]
            extensions = json.loads((await zotctl(daemon, "ext", "list", "--all", "--json")).stdout)["extensions"]
            assert [(one["name"], one["state"]) for one in extensions] == [("py-telegram", "ready")]
    assert not [log for log in (home / "logs").iterdir() if TOKEN in log.read_text()]


async def test_without_a_directory_of_its_own_a_channel_works_in_a_jail_and_asks_nothing(tmp_path, model):
    needs("bwrap")
    write = f"echo milk > list.txt; cat {tmp_path}/zot/auth.json"
    server = await model(calls(CallPart("bash", {"command": write})), text("Noted."))
    (tmp_path / "tmp").mkdir()
    env = {"TMPDIR": str(tmp_path / "tmp"), "XDG_DATA_HOME": str(tmp_path / "data"), "ZOT_APPROVAL_MODE": ""}
    async with TelegramServer() as telegram:
        configure(tmp_path / "zot", telegram, server)
        with DaemonProcess(tmp_path, env) as daemon:
            await pair(daemon, telegram)
            await telegram.write("milk, please")
            assert (await telegram.said(3))[2]["text"] == "Noted."
    assert (tmp_path / "data/zot/channels/list.txt").read_text() == "milk\n"
    result = str(server.requests[-1].messages[-1])
    assert "sk-scripted-key" not in result


QUIET = '''
import asyncio


async def connect():
    """Connect to nothing."""


async def recv():
    await asyncio.Event().wait()


async def send(message):
    """Drop it."""
'''


async def test_a_channel_is_found_when_its_file_is_saved(process):
    watcher = await process.connect()
    await watcher.ask("subscribe", topics=["extensions"])
    channels = process.place.home / "extensions" / "channels"
    channels.mkdir(parents=True)
    (channels / "quiet.py").write_text(QUIET)
    await until_state(watcher, "py-quiet", "ready")
    (channels / "quiet.py").unlink()
    await until_state(watcher, "py-quiet", "stopped")


async def zotctl(daemon, *arguments):
    return await asyncio.to_thread(
        subprocess.run,
        warm.command("zotctl", *arguments),
        env={**os.environ, **daemon.place.env},
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )
