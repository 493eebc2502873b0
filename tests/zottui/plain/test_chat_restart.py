"""The plain chat when its daemon is of another version, and when it is replaced."""

import sys

from tests.zottui.plain.terminal import chat
from zotd.testing.live_daemon import DaemonProcess
from zotd.wire.version import VERSION


def test_the_chat_continues_after_a_restart_of_the_daemon(live):
    flags = ("--provider", "ollama", "--model", "m", "--base-url", live.model("purple"))
    with chat(live.cwd, "--new", *flags, env=live.shell.env) as screen:
        screen.until("> ")
        assert live.zotctl("restart")[0] == 0
        assert screen.until("> ") == "(lost the connection to zotd; reconnecting)\n(reconnected)\n"
        screen.type("one\n")
        assert screen.until("> ").endswith("zot: purple\n")
    live.zotctl("stop")


def test_a_daemon_of_another_version_is_one_line_at_the_beginning(tmp_path):
    older = [sys.executable, "-m", "zotd.testing.skewed", "0.0.9", "1", "1"]
    with DaemonProcess(tmp_path, wrapper=older) as daemon:
        flags = ("--new", "--provider", "ollama", "--model", "m", "--base-url", "http://127.0.0.1:9")
        with chat(daemon.place.cwd, *flags, env={**daemon.place.env, "TERM": "xterm"}) as screen:
            shown = screen.until("> ")
    assert shown.count(f"zot: zotd has version 0.0.9, this program {VERSION}: zotctl restart --when-idle\n") == 1
