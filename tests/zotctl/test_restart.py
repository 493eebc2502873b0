"""`zotctl restart`: through the service manager if a service is installed, and without killing anything."""

import json
import os
import signal
import sys

import pytest

from zotd.client.blocking import connect
from zotd.client.fields import number
from zotd.wire.version import VERSION

SYSTEMCTL = f"""#!{sys.executable}
import os, subprocess, sys
with open(os.environ["SAID"], "a") as said:
    said.write(" ".join(sys.argv[1:]) + "\\n")
if os.environ.get("FAILS"):
    sys.exit("Unit zotd.service is masked.")
read, write = os.pipe()
daemon = ["sh", "-c", 'SYSTEMD_EXEC_PID=$$ exec "$@"', "sh", {sys.executable!r}, "-m", "zotd", "--ready-fd", str(write)]
nowhere = subprocess.DEVNULL  # whoever runs this waits for the end of its output
subprocess.Popen(daemon, pass_fds=[write], stdout=nowhere, stderr=nowhere, start_new_session=True)
os.close(write)
assert os.read(read, 99).startswith(b"ready")
"""
"""As systemd does it, without one: starts the daemon, and returns when that serves."""


def status(shell):
    return json.loads(shell.zotctl("status", "--json")[1])


@pytest.fixture
def service(live, shell):
    """A service is installed for the home, and there is a manager for it."""
    folder = shell.home / "bin"
    folder.mkdir()
    (folder / "systemctl").write_text(SYSTEMCTL)
    (folder / "systemctl").chmod(0o755)
    units = shell.home / "user" / ".config" / "systemd" / "user"
    units.mkdir(parents=True)
    (units / "zotd.service").write_text(f"[Service]\nEnvironment=ZOT_HOME={live.home}\n")
    said = shell.home / "said"
    shell.env |= {"PATH": f"{folder}:{shell.env['PATH']}", "SAID": str(said)}
    yield said
    shell.zotctl("stop")


def test_restart_keeps_the_daemon_if_the_configuration_is_invalid(live, shell):
    (live.home / "config.toml").write_text('[websocket]\nlisten = "0.0.0.0:1"\n')
    code, out, err = shell.zotctl("restart")
    assert (code, out) == (1, "")
    assert "TLS is required" in err
    assert status(shell)["pid"] == live.daemon.pid


def test_without_a_service_the_daemon_of_this_installation_is_started(live, shell):
    code, out, err = shell.zotctl("restart", "--json")
    said = json.loads(out)
    assert (code, err, said["state"]) == (0, "", "running")
    assert said["before"]["pid"] == live.daemon.pid
    assert live.daemon.wait() == 0
    assert status(shell)["pid"] == said["pid"]
    assert shell.zotctl("stop")[0] == 0
    code, out, _ = shell.zotctl("restart")  # where none runs
    assert (code, out) == (0, f"zotd {VERSION} is running, pid {status(shell)['pid']}\n")
    assert shell.zotctl("stop")[0] == 0


def test_restart_moves_an_unmanaged_daemon_to_the_service(service, live, shell):
    assert status(shell)["state"] == "unmanaged"
    assert shell.zotctl("restart")[0] == 0
    assert live.daemon.wait() == 0
    assert service.read_text() == "--user start zotd.service\n"
    said = status(shell)
    assert (said["state"], said["service"]) == ("running", "systemd")
    assert shell.zotctl("restart", "--when-idle")[0] == 0
    assert service.read_text() == "--user start zotd.service\n" * 2
    assert status(shell)["pid"] != said["pid"]


def test_a_service_that_does_not_start_is_one_sentence(service, live, shell):
    shell.env["FAILS"] = "1"
    code, out, err = shell.zotctl("restart")
    assert (code, out) == (1, "")
    assert err == "zotctl: `systemctl --user start zotd.service` failed: Unit zotd.service is masked.\n"


def test_restart_does_not_kill_a_daemon_that_hangs(live, shell):
    os.kill(live.daemon.pid, signal.SIGSTOP)
    try:
        code, out, err = shell.zotctl("restart")
    finally:
        os.kill(live.daemon.pid, signal.SIGCONT)
    assert (code, out) == (1, "")
    assert f"its process {live.daemon.pid} was stopped by a signal; run `kill -CONT {live.daemon.pid}`" in err
    with connect(live.daemon.place.socket) as connection:
        assert number(connection.call("daemon.status"), "pid") == live.daemon.pid
