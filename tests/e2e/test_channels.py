"""The built-in Telegram channel in a real daemon, with the commands that people type."""

import asyncio
import json
import os
import subprocess

from tests.e2e.shop import until_state
from zotd.testing import warm
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.script import text
from zotd.testing.telegram_server import TOKEN, USER, TelegramServer


async def test_a_sender_is_let_in_with_a_code_and_gets_answers(tmp_path, model):
    server = await model(text("Hello from afar."))
    home = tmp_path / "zot"
    home.mkdir(0o700)
    async with TelegramServer() as telegram:
        (home / "config.toml").write_text(
            f'provider = "openai"\nmodel = "gpt-5"\n[providers.openai]\nbase_url = "{server.openai_url}"\n'
            f'[channels.telegram]\nenabled = true\nbase_url = "{telegram.url}"\n'
        )
        auth = home / "auth.json"
        auth.write_text(json.dumps({"openai": {"api_key": "sk-scripted-key"}, "telegram": {"api_key": TOKEN}}))
        auth.chmod(0o600)
        with DaemonProcess(tmp_path) as daemon:
            await telegram.write("hello?")
            code = str((await telegram.said(1))[0]["text"]).split()[-1]
            paired = await zotctl(daemon, "channel", "pair", code)
            assert paired.returncode == 0, paired.stderr
            await telegram.said(2)
            await telegram.write("hello!")
            assert (await telegram.said(3))[2]["text"] == "Hello from afar."
            listed = json.loads((await zotctl(daemon, "channel", "list", "--json")).stdout)
            assert [(one["channel"], one["sender"]) for one in listed["paired"]] == [("telegram", str(USER))]
            extensions = json.loads((await zotctl(daemon, "ext", "list", "--all", "--json")).stdout)["extensions"]
            assert [(one["name"], one["state"]) for one in extensions] == [("py-telegram", "ready")]
    assert not [log for log in (home / "logs").iterdir() if TOKEN in log.read_text()]


QUIET = '''
import asyncio


async def connect():
    """Nobody writes here."""


async def recv():
    await asyncio.Event().wait()


async def send(message):
    """To nobody."""
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
