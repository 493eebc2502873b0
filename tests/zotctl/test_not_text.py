"""Arguments that are not UTF-8 and requests that the daemon cannot parse fail immediately."""

import asyncio
import json
import subprocess

import psutil
import pytest

from zotd.client.blocking import connect
from zotd.client.client import Client
from zotd.client.errors import CallError, NotTextError
from zotd.client.typed import BlockingClient
from zotd.wire import api

BAD = b"say 2 \x9b"

TOO_LONG = "x" * (17 * 1024 * 1024)
"""Exceeds the daemon's line limit. The daemon skips such a line, so it cannot respond to its request ID."""

AT_ONCE_S = 20
"""Seconds; well below the 30 s timeout of a request. Loaded machines take seconds to start Python."""


def run(live, module, *args):
    with live.shell.start(module, *args) as process:
        out, err = process.communicate(timeout=AT_ONCE_S)
    return process.returncode, out, err


def refusal(what):
    return f'{what} is not UTF-8 at "say 2 \\x9b"; nothing was sent. Convert it, or set a UTF-8 locale'


def test_a_prompt_that_is_not_utf8_is_refused_at_once_and_makes_no_session(live):
    assert run(live, "zotd.cli", "-p", BAD) == (1, "", f"zot: {refusal('the prompt')}\n")
    code, out, _ = run(live, "zotd.cli", "--json", BAD)
    assert (code, json.loads(out)) == (1, {"type": "error", "message": refusal("the prompt")})
    with live.connect() as connection:
        assert connection.call("session.list")["sessions"] == []


def test_arguments_of_zotctl_that_are_not_utf8_are_refused_at_once(live):
    live.session()
    assert run(live, "zotctl", "send", "--last", BAD) == (1, "", f"zotctl: {refusal('the message')}\n")
    assert run(live, "zotctl", "search", BAD) == (1, "", f"zotctl: {refusal('the query')}\n")


def test_a_variable_that_is_not_utf8_is_left_out_of_a_sessions_environment(live):
    live.shell.env["ODD"] = b"\x9b".decode(errors="surrogateescape")
    flags = ["--provider", "openai", "--api-key", "k", "--base-url", live.model("hello")]
    assert run(live, "zotd.cli", "-p", "hi", *flags) == (0, "hello\n", "")


def test_a_variable_that_is_not_utf8_reaches_a_daemon_that_is_started(live):
    live.zotctl("stop")
    live.shell.env["ODD"] = b"\x9b".decode(errors="surrogateescape")
    assert live.zotctl("start")[0] == 0
    with live.connect() as connection:
        daemon = connection.server_pid
    assert psutil.Process(daemon).environ()["ODD"] == live.shell.env["ODD"]


def test_input_of_send_that_is_not_utf8_is_sent_with_replacements(live):
    session = live.session(live.model("hello"))
    with live.shell.start("zotctl", "send", "--last", "--wait", "-", stdin=subprocess.PIPE) as process:
        process.stdin.buffer.write(BAD)
        out, _ = process.communicate(timeout=AT_ONCE_S)
    assert (process.returncode, out) == (0, "hello\n")
    with live.connect() as connection:
        message = connection.call("get_messages", session=session)["messages"][0]
    assert message["content"] == [{"type": "text", "text": "say 2 \ufffd"}]


def test_a_line_that_the_daemon_cannot_read_fails_the_call_that_sent_it(live):
    with connect(live.socket) as connection:
        with pytest.raises(CallError) as refused:
            connection.call("ping", x=float("nan"))
        assert refused.value.code == "bad_request"
        assert connection.call("ping") == {"pong": True}


def test_the_typed_clients_fail_at_once_too(live):
    prompt = api.Prompt(session="s", message=TOO_LONG)
    with BlockingClient.connect(path=live.socket, autostart=False) as client:
        with pytest.raises(CallError, match="longer than 16 MiB"):
            client.call(prompt)
        with pytest.raises(NotTextError):
            client.call(api.Prompt(session="s", message="\udc9b"))
        client.call(api.Nothing(), command="ping")

    async def look():
        async with Client.connect(path=live.socket, autostart=False) as client:
            with pytest.raises(CallError, match="longer than 16 MiB"):
                await client.call(prompt)
            await client.call(api.Nothing(), command="ping")

    asyncio.run(look())
