"""Shell completion: in real shells, and computed from the parsers."""

import os
import pwd
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.needs import needs
from tests.zottui.tmux import Tmux
from zotctl import completion_engine
from zotd.api.audited import AUDITED
from zotd.providers.catalog.vendors import VENDORS
from zotd.template.client import SWITCH

BIN = Path(sys.executable).parent


def offered(shell, *words):
    """Return the candidates for the last word of a command line."""
    code, out, err = shell.zotctl("candidates", *words)
    assert (code, err) == (0, "")
    return [line.split("\t")[0] for line in out.splitlines()]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["zotctl", "sea"], ["search"]),
        (["zotctl", "ext", "re"], ["remove", "reload", "record", "replay"]),
        (["zot", "ext", "re"], ["remove", "reload", "record", "replay"]),
        (["zotctl", "sessions", "--st"], ["--state"]),
        (["zotctl", "export", "--format", ""], ["jsonl", "markdown"]),
        (["zotctl", "export", "--format=m"], ["--format=markdown"]),
        (["zotctl", "export", "--format", "jsonl", "--form"], ["--format"]),
        (["zotctl", "sessions", "--cwd", "/et"], [":dirs"]),
        (["zotctl", "backup", ""], [":files"]),
        (["zotctl", "completion", ""], ["bash", "zsh", "fish"]),
        (["zotctl", "no-such-command", ""], []),
        (["zotctl", "--no-color", "ping", "--"], ["--help", "--autostart"]),
        (["zot", "--mod"], ["--model", "--mode"]),
        (["zot", "--mode", "r"], ["read-only"]),
        (["zot", "--fl"], ["--fleet"]),
        (["zot", "r"], ["rpc"]),
        (["zot", "fix", "r"], []),
        (["zotctl", "--", "--token-file", ""], [":files"]),
        (["zot", "--api-key-file", ""], [":files"]),
        (["zotctl", "--", "--host", "wss://box", "sea"], ["search"]),
        (["zot", "--session", "tests", "r"], []),
    ],
)
def test_completion_offers_what_the_parsers_define(shell, line, words):
    assert offered(shell, *line) == words


def test_sessions_are_offered_with_their_names(live):
    session = live.session()
    code, out, _ = live.zotctl("candidates", "zotctl", "attach", "--session", "")
    assert (code, out) == (0, f"{session}\tidle  tests  {live.cwd}\n")


def test_approvals_are_offered_with_their_call(live):
    call = {"type": "call", "name": "bash", "args": {"command": "touch out"}}
    session = live.session(live.scripted({"steps": [call]}), mode="ask")
    with live.connect() as connection:
        connection.call("attach", session=session)
        connection.call("prompt", session=session, message="go")
        question = next(event for event in connection.events(10) if event["type"] == "approval_requested")
    for command in ("approve", "deny"):
        code, out, _ = live.zotctl("candidates", "zotctl", command, "")
        assert (code, out) == (0, f"{question['approval']}\tbash wants to run: touch out\n")
    assert live.zotctl("deny", question["approval"])[0] == 0


def test_batches_are_offered_with_their_numbers(live):
    prompt = {"number": 1, "message": "a", "cwd": str(live.cwd), "labels": ["nowhere"]}
    with live.connect() as connection:
        connection.call("batch.submit", batch="nightly", prompts=[prompt])
    for action in ("cancel", "results"):
        code, out, _ = live.zotctl("candidates", "zotctl", "fleet", action, "")
        assert (code, out) == (0, "nightly\t1 waiting  0 running  0 ended\n")


def test_accounts_and_commands_of_the_audit_trail_are_offered(live):
    assert offered(live, "zotctl", "audit", "--command", "") == list(AUDITED)
    assert offered(live, "zotctl", "audit", "--command", "token.") == ["token.create", "token.revoke"]
    assert offered(live, "zotctl", "audit", "--who", "") == []
    assert live.zotctl("token", "create", "phone", "--role", "read")[0] == 0
    assert offered(live, "zotctl", "audit", "--who", "lo") == [f"local:{pwd.getpwuid(os.getuid()).pw_name}"]


def test_extensions_are_offered_with_and_without_a_daemon(live):
    live.write("weather")
    live.session()
    live.until("weather", "ready")
    for action in ("logs", "tap", "reload", "disable"):
        assert live.zotctl("candidates", "zotctl", "ext", action, "wea")[1] == "weather\tready\n"
    (live.home / "logs" / "ext-old.log").touch()
    live.daemon.end()
    assert offered(live, "zotctl", "ext", "logs", "") == ["old", "weather"]


def test_providers_are_offered_without_a_daemon_and_are_those_of_the_catalog(shell):
    vendors = [vendor.name for vendor in VENDORS]
    assert {vendor.name: vendor.label for vendor in VENDORS} == completion_engine.PROVIDERS
    assert offered(shell, "zotctl", "login", "") == vendors
    assert offered(shell, "zot", "--provider", "") == vendors
    assert offered(shell, "zot", "--provider=anth") == ["--provider=anthropic"]


def test_beside_a_daemon_that_hangs_the_tab_key_waits_less_than_a_second_for_it(live):
    live.write("weather")
    limits_s = completion_engine.CONNECT_S + completion_engine.ASK_S
    begun = time.monotonic()
    offered(live, "zotctl", "completion", "")  # which asks nobody: the program's own start
    own_s = time.monotonic() - begun
    os.kill(live.daemon.pid, signal.SIGSTOP)
    try:
        for line, words in (
            (["zotctl", "attach", "--session", ""], []),
            (["zotctl", "approve", ""], []),
            (["zotctl", "ext", "logs", ""], ["weather"]),
            (["zotctl", "login", "op"], ["openai", "openrouter"]),
        ):
            begun = time.monotonic()
            assert offered(live, *line) == words
            assert time.monotonic() - begun < limits_s + own_s + 1  # a loaded machine may start it more slowly
    finally:
        os.kill(live.daemon.pid, signal.SIGCONT)
    assert limits_s + 0.3 < 1


def test_without_a_daemon_no_session_is_offered_and_none_is_started(shell):
    assert offered(shell, "zotctl", "attach", "--session", "") == []
    assert shell.zotctl("ping")[0] == 1


@pytest.fixture
def env(tmp_path):
    """The environment of a shell with our programs in PATH and without the user's configuration."""
    path = f"{BIN}:{os.environ['PATH']}"
    return {"HOME": str(tmp_path), "ZOT_HOME": str(tmp_path / "zot"), "PATH": path, SWITCH: "off"}


def test_bash_completes_commands_and_files(env, tmp_path):
    (tmp_path / "notes.txt").touch()
    lines = """
        source <(zotctl completion bash)
        COMP_WORDS=(zotctl sea); COMP_CWORD=1; _zot zotctl; echo "${COMPREPLY[@]}"
        COMP_WORDS=(zot --mode r); COMP_CWORD=2; _zot /usr/bin/zot; echo "${COMPREPLY[@]}"
        complete -p zot zotctl
    """
    done = subprocess.run(["bash", "-c", lines], env=env, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["search", "read-only", "complete -F _zot zot", "complete -F _zot zotctl"]
    with Tmux(["bash", "--norc", "-i"], folder=tmp_path, env=env) as terminal:
        terminal.type("source <(zotctl completion bash); echo rea''dy\n")
        terminal.wait("^ready")
        terminal.type("zotctl backup no\t")
        terminal.wait("zotctl backup notes.txt")


def test_zsh_completes_commands_with_what_they_mean(env, tmp_path):
    needs("zsh")
    with Tmux(["zsh", "-f", "-i"], folder=tmp_path, env={**env, "SHELL": "zsh"}) as terminal:
        terminal.type("autoload -Uz compinit && compinit -u; source <(zotctl completion zsh); echo rea''dy\n")
        terminal.wait("^ready")
        terminal.type("zotctl ext re\t")
        terminal.wait("reload +-- restart extensions")
        terminal.key("C-u")
        terminal.type("zot --mode r\t")
        terminal.wait("zot --mode read-only")


def test_fish_completes_commands_with_what_they_mean(env, tmp_path):
    (tmp_path / "notes.txt").touch()
    line = "zotctl completion fish | source; complete -C 'zotctl sea'; complete -C 'zot --mode r'; complete -C 'zotctl backup no'"
    needs("fish")
    done = subprocess.run(
        ["fish", "--no-config", "-c", line], env=env, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["search\tsearch the messages of all sessions", "read-only", "notes.txt"]
