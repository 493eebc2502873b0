"""`zotctl status` with a daemon in each state, produced for real: state, error and next command."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from zotctl import service_lookup, status, status_probe
from zotd import paths
from zotd.client.blocking import connect
from zotd.client.fields import strings
from zotd.testing.live_daemon import ROOT, DaemonProcess

OTHER_VERSION = [sys.executable, "-m", "zotd.testing.skewed", "0.2.0", "1", "2"]

BY_SYSTEMD = ["sh", "-c", 'SYSTEMD_EXEC_PID=$$ exec "$@"', "sh"]
"""systemd tells the process that it starts its own pid."""


def asked(env):
    """The exit code, and the status."""
    done = subprocess.run(
        [sys.executable, "-m", "zotctl", "status", "--json"], env=env, capture_output=True, text=True, check=False
    )
    said = json.loads(done.stdout)
    assert (said["v"], done.returncode) == (1, 1 if "error" in said else 0)
    return said


@contextmanager
def stopped(pid):
    """Its process does nothing in the meantime."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def unit(place, text=None):
    """A service is installed for the home."""
    folder = place.folder / "user" / ".config" / "systemd" / "user"
    folder.mkdir(parents=True)
    (folder / "zotd.service").write_text(text or f'[Service]\nEnvironment="ZOT_HOME={place.home}"\n')


@pytest.fixture
def daemon(tmp_path):
    with DaemonProcess(tmp_path, is_child=True) as process:
        yield process


@pytest.fixture
def env(daemon):
    return daemon.place.env


def test_daemon_is_running_and_then_stopped(daemon, env):
    said = asked(env)
    assert (said["state"], said["pid"], said["next"], said["service"]) == ("running", daemon.pid, None, None)
    assert said["protocols"] == [1, 1]
    daemon.end()
    said = asked(env)
    assert (said["state"], said["pid"], said["next"]) == ("stopped", None, "zotctl start")
    assert "nothing listens" in said["error"]


def test_killed_daemon_is_stale_even_as_a_zombie(daemon, env, tmp_path):
    os.kill(daemon.pid, signal.SIGKILL)
    os.waitid(os.P_PID, daemon.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has taken note of it
    said = asked(env)
    assert (said["state"], said["next"]) == ("stale", "zotctl start")
    assert "was killed" in said["error"]
    daemon.wait()
    assert asked(env)["state"] == "stale"
    (daemon.place.home / "zotd.lock").write_text(f"{os.getpid()}\n")  # its pid belongs to somebody else now
    assert asked(env)["state"] == "stale"


def test_a_removed_socket_is_reported_until_a_signal_creates_it_again(daemon, env):
    with connect(daemon.place.socket) as attached:
        Path(daemon.place.socket).unlink()
        said = asked(env)
        assert (said["state"], said["pid"], said["next"]) == ("listener_lost", daemon.pid, f"kill -USR1 {daemon.pid}")
        os.kill(daemon.pid, signal.SIGUSR1)
        for _ in range(2):  # the signal may be found together with the first, and is dealt with before the second
            attached.call("ping")
        assert asked(env)["state"] == "running"


def test_daemon_warns_when_another_process_has_its_socket(daemon, env, tmp_path):
    path = daemon.place.socket
    with connect(path) as attached, socket.socket(socket.AF_UNIX) as listener:
        Path(path).unlink()
        listener.bind(path)
        listener.listen()
        said = asked(env)
        assert (said["state"], said["pid"], said["next"]) == ("listener_lost", daemon.pid, f"kill {os.getpid()}")
        os.kill(daemon.pid, signal.SIGUSR1)
        attached.call("ping")
        (warning,) = strings(attached.call("daemon.status"), "warnings")
        assert "another program listens" in warning
        assert attached.call("daemon.status")["pid"] == daemon.pid  # it goes on with those it has


def test_another_daemon_at_its_place_is_told_from_it(daemon, env, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    with DaemonProcess(other) as stranger:
        Path(daemon.place.socket).unlink()
        Path(daemon.place.socket).symlink_to(stranger.place.socket)
        said = asked(env)
    assert (said["state"], said["pid"], said["next"]) == ("listener_lost", daemon.pid, f"kill {stranger.pid}")


def test_daemon_that_does_not_answer_is_wedged_with_the_known_reason(daemon, env):
    with stopped(daemon.pid):
        said = asked(env)
    assert (said["state"], said["pid"], said["next"]) == ("wedged", daemon.pid, f"kill -CONT {daemon.pid}")
    assert "stopped by a signal" in said["error"]
    assert asked(env)["state"] == "running"


def test_nothing_that_it_waits_for_takes_it_beyond_three_seconds():
    assert status_probe.CONNECT_S + status_probe.ANSWER_S <= 2.5


def test_daemon_being_started_is_starting(daemon, env):
    lock = paths.start_lock(daemon.place.socket)
    Path(daemon.place.socket).unlink()
    with Path(lock).open("w", encoding="ascii") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # somebody is starting it
        assert asked(env)["state"] == "starting"


def test_daemon_of_another_version_is_mismatched(tmp_path):
    with DaemonProcess(tmp_path, wrapper=OTHER_VERSION) as daemon:
        said = asked(daemon.place.env)
    assert (said["state"], said["version"], said["protocols"]) == ("mismatched", "0.2.0", [1, 2])
    assert "error" not in said  # protocol 1 is common


def test_daemon_not_started_by_the_installed_service_is_unmanaged(daemon, env):
    assert asked(env)["state"] == "running"
    unit(daemon.place)
    said = asked(env)
    assert (said["state"], said["next"]) == ("unmanaged", "zotctl restart --when-idle")
    assert "zotd.service is installed" in said["warnings"][-1]
    file = daemon.place.folder / "user" / ".config" / "systemd" / "user" / "zotd.service"
    file.write_text("[Service]\nEnvironment=ZOT_HOME=/elsewhere\n")  # it is not about this home
    assert asked(env)["state"] == "running"
    file.write_text("[Service]\n")  # nor about one that has to be named
    assert asked(env)["state"] == "running"


def test_daemon_of_an_installed_service_is_managed(tmp_path):
    with DaemonProcess(tmp_path, wrapper=BY_SYSTEMD) as daemon:
        said = asked(daemon.place.env)
        assert (said["state"], said["service"], said["next"]) == ("unmanaged", "systemd", "zotctl service install")
        unit(daemon.place)
        assert asked(daemon.place.env)["state"] == "running"


def test_file_that_is_not_a_socket_is_unreachable(tmp_path, shell):
    (tmp_path / "zotd.sock").write_text("")
    said = asked(shell.env)
    assert (said["state"], said["next"]) == ("unreachable", f"mv {shell.path} {shell.path}.old")


def test_the_help_has_every_state():
    words = {line.split()[0] for line in status.USAGE.splitlines() if line.startswith("  ")}
    said = {word for word in status_probe.__doc__.split("`")[1::2] if not word.startswith("zotctl")}
    assert words == said


def test_nothing_that_it_repeats_can_steer_a_terminal(tmp_path, shell):
    with DaemonProcess(tmp_path) as daemon:
        (daemon.place.home / "config.toml").write_text(r'"\u001b[2J\u009b" = 1')
        shell.env = daemon.place.env
        assert shell.zotctl("reload")[0] == 0
        for flags in ([], ["--json"]):
            code, out, _ = shell.zotctl("status", *flags)
            assert (code, "unknown setting" in out) == (0, True)
            assert {"\x1b", "\x9b"}.isdisjoint(out)


@pytest.mark.parametrize(
    ("text", "serves"),
    [
        ('Environment="ZOT_HOME={quoted}"', True),
        ("Environment='ZOT_HOME=%h/50%% of \"it\"'", True),
        ('Environment="ZOT_HOME={quoted}-two"', False),
        ('Environment="ZOT_HOME={quoted}', False),
    ],
)
def test_a_service_is_for_the_home_that_it_names_as_systemd_reads_it(tmp_path, text, serves):
    home = tmp_path / '50% of "it"'
    env = {"HOME": str(tmp_path), "ZOT_HOME": str(home)}
    folder = Path(service_lookup.folder(env))
    folder.mkdir(parents=True)
    quoted = str(home).replace("%", "%%").replace('"', '\\"')
    (folder / "zotd.service").write_text(f"[Service]\n{text.format(quoted=quoted)}\n")
    assert (service_lookup.installed(env) is not None) is serves


def test_people_are_told_the_next_command(shell):
    code, out, err = shell.zotctl("status")
    assert (code, err) == (1, f"zotctl: zotd is not running: nothing listens at {shell.path}\n")
    assert out.splitlines()[-1] == "next        zotctl start"


def test_two_homes_in_one_temporary_directory_have_a_daemon_each(tmp_path):
    def ctl(home, *args):
        env = {
            "HOME": str(tmp_path / home),
            "TMPDIR": str(tmp_path),
            "PYTHONPATH": str(ROOT),
            "PATH": os.environ["PATH"],
        }
        command = [sys.executable, "-m", "zotctl", *args, "--json"]
        return json.loads(subprocess.run(command, env=env, capture_output=True, check=False).stdout)

    first = ctl("a", "start")
    try:
        other = ctl("b", "status")
        assert (other["state"], other["socket"] == first["socket"]) == ("stopped", False)
        second = ctl("b", "start")
        assert second["pid"] != first["pid"]
        assert ctl("b", "stop")["state"] == "stopped"
        assert ctl("a", "status")["pid"] == first["pid"]
    finally:
        assert ctl("a", "stop")["state"] == "stopped"
