"""Commands with a daemon that does not answer, and `zotctl stop --force`, with real processes."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

LIMIT_S = 15
"""Half of what they waited before; most of it is for a loaded machine."""

STUBBORN = """
import os, signal, socket, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
home = sys.argv[1]
os.makedirs(home + "/run", 0o700)
os.chmod(home, 0o700)
lock = open(home + "/zotd.lock", "w")
lock.write(str(os.getpid()) + "\\n")
lock.flush()
listener = socket.socket(socket.AF_UNIX)
listener.bind(home + "/run/zotd.sock")
listener.listen(8)
print("ready", flush=True)
signal.pause()
"""
"""Looks like a daemon that neither answers nor ends at SIGTERM."""


@pytest.fixture
def hung(live):
    os.kill(live.daemon.pid, signal.SIGSTOP)
    yield live
    with suppress(ProcessLookupError):
        os.kill(live.daemon.pid, signal.SIGCONT)


def test_every_command_names_the_process_that_hangs_and_the_command_that_helps(hung):
    begun = time.monotonic()
    zotctl = [["stop"], ["restart"], ["sessions"], ["ext", "list"], ["metrics"], ["top", "--once"]]
    commands = [*(("zotctl", *args) for args in zotctl), ("zotd.cli", "-p", "hi")]
    pid = hung.daemon.pid
    # At the same time: each waits for the daemon as long as the others.
    for command, process in [(command, hung.shell.start(*command)) for command in commands]:
        out, err = process.communicate(timeout=LIMIT_S)
        assert (process.returncode, out) == (1, ""), command
        assert err.count("\n") == 1, command
        assert f"its process {pid} was stopped by a signal; run `kill -CONT {pid}` to resume it, or " in err, command
        assert err.endswith("`zotctl stop --force && zotctl start` to replace it\n"), command
    assert time.monotonic() - begun < LIMIT_S


def test_stop_force_ends_a_daemon_that_hangs(hung):
    code, out, err = hung.zotctl("stop", "--force")
    assert (code, out, err) == (0, "zotd did not answer and was stopped with SIGTERM\n", "")
    hung.daemon.wait()
    assert hung.zotctl("sessions")[0] == 0  # the next one is started
    assert hung.zotctl("stop")[0] == 0


def test_stop_force_of_a_daemon_that_answers_stops_it_as_usual(live):
    assert live.zotctl("stop", "--force")[:2] == (0, "zotd has stopped\n")
    assert live.zotctl("stop", "--force", "--json")[1] == '{"v":1,"state":"stopped"}\n'


def test_stop_force_kills_what_ignores_sigterm_and_nothing_that_only_has_its_pid(shell):
    home = shell.home / "zot"
    del shell.env["ZOTD_SOCKET"]
    command = [sys.executable, "-c", STUBBORN, str(home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        code, out, _ = shell.zotctl("stop", "--force", "--json")
        assert (code, json.loads(out)) == (0, {"v": 1, "state": "stopped", "signal": "SIGKILL"})
        assert process.wait() == -signal.SIGKILL
    with subprocess.Popen(["sleep", "60"]) as bystander:
        (home / "zotd.lock").write_text(f"{bystander.pid}\n")
        assert shell.zotctl("stop", "--force")[:2] == (0, "zotd has stopped\n")
        assert bystander.poll() is None
        bystander.kill()


def test_ext_logs_reads_the_file_when_no_daemon_answers(hung):
    logs = hung.home / "logs"
    logs.mkdir(exist_ok=True)
    (logs / "ext-weather.log").write_text("one\ntwo\nthree\n")
    assert hung.zotctl("ext", "logs", "weather", "-n", "2")[:2] == (0, "two\nthree\n")
    os.kill(hung.daemon.pid, signal.SIGKILL)
    hung.daemon.wait()
    code, out, _ = hung.zotctl("ext", "logs", "weather", "--json")
    found = json.loads(out)
    assert (code, found["text"], found["path"]) == (0, "one\ntwo\nthree\n", str(logs / "ext-weather.log"))
    code, _, err = hung.zotctl("ext", "logs", "nobody")
    assert code == 1
    assert err.startswith("zotctl: no log found for extension nobody; zotd is not running")
