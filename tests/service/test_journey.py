"""The daemon under a real `systemd --user`: installed, started by a client, reloaded, killed, restarted, removed."""

import json
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.service.user_manager import UserManager, lacking

BESIDE = str(Path(__file__).parent / "beside.py")

LACKING = lacking()

SLOW = "[Service]\nExecStartPre=/bin/sleep 2.5\n"
"""Longer than `zotctl status` waits for a daemon that runs already."""

IMPATIENT = "[Unit]\nStartLimitBurst=1000\n[Service]\nWatchdogSec=2\nRestartSec=0\n"
"""On a machine that stands still itself for 2 s the watchdog bites once more, which the test does not mind."""

pytestmark = pytest.mark.skipif(LACKING is not None, reason=str(LACKING))


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """Instead of the one of all tests: the manager stays until the journey is over, and takes all of its own along."""


@pytest.fixture(scope="module")
def manager(tmp_path_factory):
    """A manager without a daemon."""
    with closing(UserManager(tmp_path_factory.mktemp("service"))) as made:
        yield made


@pytest.fixture(scope="module")
def first(manager):
    """What `install` says while a daemon runs that a client has started, and that daemon's pid."""
    manager.zotctl("start")
    pid = manager.asked("status")["pid"]
    return pid, manager.asked("service", "install")


@pytest.fixture(scope="module")
def service(manager, first):
    """The manager, with the service."""
    manager.zotctl("stop")
    code, said = manager.zotctl("service", "install")
    assert code == 0, said
    return manager


def pid(manager):
    code, said = manager.run(sys.executable, BESIDE, "pid")
    assert code == 0, said
    return json.loads(said)


def next_pid(manager, before):
    """The pid of the daemon after `before`, which may have an answer under way when it is stopped."""
    while (found := pid(manager)) == before:
        pass
    return found


def kill(manager, number, daemon):
    manager.run("kill", f"-{number.value}", str(daemon))


def test_install_does_not_take_over_from_a_daemon_that_runs_but_says_how(manager, first):
    pid, said = first
    assert said["installed"]
    assert said["pid"] is None
    assert said["unmanaged_pid"] == pid
    assert said["to_do"][0].startswith("zotctl stop && zotctl service install")
    assert set(said["units"].values()) == {"inactive"}


def test_the_installed_service_runs_and_is_told_by_everybody(service):
    found = service.asked("service", "status")
    assert found["units"] == {"zotd.socket": "active", "zotd.service": "active"}
    assert (found["pid"], found["unmanaged_pid"]) == (pid(service), None)
    assert service.asked("status")["service"] == "systemd"
    assert service.show("StatusText").startswith("0 sessions, 0 running, ")
    assert not found["linger"]
    assert "loginctl enable-linger" in found["to_do"][0]


def test_installing_it_again_changes_nothing(service):
    before = pid(service)
    assert service.asked("service", "install")["pid"] == before


def test_status_and_doctor_do_not_start_a_daemon_that_was_stopped(service):
    pid(service)
    service.zotctl("stop")
    for _ in range(2):
        code, said = service.zotctl("status", "--json")
        assert (code, json.loads(said.splitlines()[0])["state"]) == (1, "stopped"), said
        assert "systemd listens" in said
        code, said = service.zotctl("doctor")
        assert "the daemon is stopped" in said
        assert service.show("ActiveState") == "inactive"
    assert service.asked("status", "--autostart")["state"] == "running"


def test_status_with_autostart_waits_for_a_slow_start(service):
    pid(service)
    service.zotctl("stop")
    override = service.home / ".config/systemd/user/zotd.service.d/slow.conf"
    override.parent.mkdir(exist_ok=True)
    override.write_text(SLOW)
    service.order("daemon-reload")
    try:
        assert service.asked("status", "--autostart")["state"] == "running"
    finally:
        override.unlink()
        override.parent.rmdir()
        service.order("daemon-reload")


def test_a_client_starts_a_daemon_that_was_stopped(service):
    before = pid(service)
    service.zotctl("stop")
    assert service.show("Result") == "success"
    assert pid(service) not in {before, 0}


def test_a_reload_takes_a_good_configuration_and_keeps_the_old_one_for_a_bad(service):
    before, file = pid(service), service.home / ".local/state/zot/config.toml"
    file.write_text("[approval]\nmode = 'nonsense'\n")
    service.order("reload", "zotd.service")
    code, said = service.zotctl("reload")
    assert (code, "approval.mode" in said) == (1, True)
    assert "approval.mode" in service.asked("status")["warnings"][0]
    file.write_text("[approval]\nmode = 'ask'\n[ext]\ntool_timeout_s = 5\n")
    assert service.asked("reload") == {
        "v": 1,
        "applied": ["approval.mode"],
        "restart": ["ext.tool_timeout_s"],
        "warnings": [],
    }
    assert service.asked("status")["warnings"] == []
    file.unlink()
    service.order("reload", "zotd.service")
    assert (service.show("ActiveState"), pid(service)) == ("active", before)


def test_a_killed_daemon_is_started_again(service):
    before, restarts = pid(service), int(service.show("NRestarts"))
    kill(service, signal.SIGKILL, before)
    assert pid(service) != before
    assert int(service.show("NRestarts")) == restarts + 1


def test_a_daemon_that_hangs_is_ended_by_the_watchdog_and_started_again(service):
    override = service.home / ".config/systemd/user/zotd.service.d/short.conf"
    override.parent.mkdir()
    override.write_text(IMPATIENT)
    service.order("daemon-reload")
    service.order("restart", "zotd.service")
    before = pid(service)
    kill(service, signal.SIGSTOP, before)
    assert next_pid(service, before)
    override.unlink()
    service.order("daemon-reload")


def test_no_client_is_refused_during_a_restart(service):
    knocking = service.start(
        sys.executable, BESIDE, "knock", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert knocking.stdout.readline() == "begun\n"
    before = pid(service)
    service.order("restart", "zotd.service")
    assert pid(service) != before
    said, errors = knocking.communicate("", timeout=30)
    found = json.loads(said)
    assert found.pop("answered") > 1, errors
    assert [word for word in found if word.startswith("refused")] == []


def test_uninstall_leaves_the_sessions_alone_and_may_be_repeated(service):
    for _ in range(2):
        found = service.asked("service", "uninstall")
        assert (found["installed"], found["pid"]) == (False, None)
    assert set(found["units"].values()) == {"missing"}
    assert (service.home / ".local/state/zot/zot.db").exists()
    code, said = service.zotctl("start")
    assert code == 0, said
    assert service.asked("status")["service"] is None
    service.zotctl("stop")
