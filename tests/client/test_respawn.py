"""A daemon that ends again and again is not started for ever."""

import json
import os
import select
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

import zotd
from zotd import paths
from zotd.client import autostart, respawn_limit
from zotd.client.blocking import Connection, connect
from zotd.client.errors import NotRunningError, StartError
from zotd.client.fields import number
from zotd.client.lock_owner import lock_owner_of

FAKE = (sys.executable, "-P", "-m", "zotd.testing.fake_daemon")


@pytest.fixture
def env(tmp_path):
    return {
        "ZOT_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(Path(zotd.__file__).parent.parent),
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
    }


@pytest.fixture
def path(env):
    """Environment for a daemon that is stopped at the end of the test."""
    where = paths.socket_path(env)
    yield where
    stop(where)


def stop(path):
    try:
        connection = connect(path)
    except NotRunningError:
        return
    with connection:
        pid = number(connection.call("hello", role="admin"), "pid")
        with gone(pid):
            connection.call("daemon.shutdown")
    Path(path).unlink(missing_ok=True)  # the fake daemon does not remove it


class gone:  # noqa: N801  (reads like a function)
    """Waits at the end of the block until the process has ended."""

    def __init__(self, pid):
        self._process = os.pidfd_open(pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        assert select.select([self._process], [], [], 20)[0]
        os.close(self._process)


def started(path, env, command=autostart.DAEMON):
    """Start the daemon as a client does; return its pid."""
    with Connection(autostart.ensure(path, env, command)) as connection:
        return number(connection.call("hello"), "pid")


def killed(path, env):
    pid = started(path, env)
    with gone(pid):
        os.kill(pid, signal.SIGKILL)
    return pid


@pytest.fixture
def forgetful():
    """Start the daemon as another process would: this one remembers what it has started."""

    def forget():
        autostart._served.clear()
        autostart._started_again.clear()

    return forget


def test_after_three_killed_daemons_only_an_explicit_start_works(path, env, forgetful):
    for _ in range(3):
        killed(path, env)
        forgetful()
    with pytest.raises(StartError) as caught:
        started(path, env)
    sentence = str(caught.value)
    assert sentence.startswith("zotd was started 3 times within 60 s and failed each time, last because: it was killed")
    assert f"(log: {paths.start_log(env)})" in sentence
    assert sentence.endswith("`zotctl start` starts it now")
    respawn_limit.RespawnLimit(path, env).forget()
    assert started(path, env) > 0


def test_starting_is_allowed_again_after_the_window(path, env, forgetful):
    for _ in range(3):
        killed(path, env)
        forgetful()
    ledger = Path(f"{path}.starts")
    ledger.write_text(
        json.dumps([[at - respawn_limit.WINDOW_S, *rest] for at, *rest in json.loads(ledger.read_text())])
    )
    assert started(path, env) > 0


def test_failed_starts_count_and_the_last_reason_is_reported(path, env):
    for failure in ["crash", "silent", "error"]:
        with pytest.raises(StartError, match="cannot start zotd"):
            autostart.ensure(path, env | {"FAKE_START": failure}, FAKE)
    with pytest.raises(StartError, match="last because: the database is from a newer version \\(log: "):
        started(path, env)


def test_failures_before_a_change_of_the_configuration_do_not_count(path, env):
    config = Path(env["ZOT_HOME"]) / "config.toml"
    config.parent.mkdir(mode=0o700)
    config.write_text("log_level = 'loud'\n")
    for sentence in [*["cannot start zotd"] * 3, "failed each time, last because"]:
        with pytest.raises(StartError, match=f"{sentence}.*log_level must be"):
            started(path, env)
    config.unlink()
    assert started(path, env) > 0


def test_stopped_daemons_do_not_count(path, env):
    for _ in range(4):
        started(path, env, FAKE)
        stop(path)


@pytest.mark.parametrize(("lived_s", "counts"), [(0, True), (respawn_limit.LIVED_S + 1, False)])
def test_a_daemon_that_was_killed_later_does_not_count(path, env, lived_s, counts):
    paths.check_private_dir(str(Path(path).parent))
    Path(path).touch()  # a killed daemon leaves its socket
    now = time.monotonic()
    failed = [[now - 30, 0, 0, "no"], [now - 29, 0, 0, "no"]]
    Path(f"{path}.starts").write_text(json.dumps([*failed, [now - lived_s, 0, 0, None]]))
    complaint = respawn_limit.RespawnLimit(path, env).complaint()
    Path(path).unlink()
    assert (complaint is not None) is counts


def test_a_damaged_or_outdated_record_file_is_ignored(path, env):
    paths.check_private_dir(str(Path(path).parent))
    for content in ["{", "[1]", json.dumps([[1e12, 0, 0, "x"]] * 3), '[["x", "y", "z"]]']:
        Path(f"{path}.starts").write_text(content)
        assert started(path, env, FAKE) > 0
        stop(path)


def test_a_process_replaces_a_killed_daemon_only_once(path, env):
    killed(path, env)
    killed(path, env)
    with pytest.raises(StartError, match="this program had restarted it once"):
        started(path, env)


def test_clients_wait_during_a_restart(path, env):
    paths.check_private_dir(str(Path(path).parent))
    assert not autostart.is_being_started(path)
    found = []
    with autostart.held_up(path):
        assert autostart.is_being_started(path)
        waiting = threading.Thread(target=lambda: found.append(started(path, env, FAKE)))
        waiting.start()
        with Connection(autostart.start(path, env, FAKE)) as connection:
            pid = connection.call("hello")["pid"]
    waiting.join()
    assert found == [pid]


def test_a_lock_file_with_a_reused_pid_has_no_owner(tmp_path):
    """Pids are reused: a running process with that pid need not be the daemon."""
    lock = tmp_path / "zotd.lock"
    lock.write_text(f"{os.getpid()}\n")
    assert lock_owner_of(str(lock)) is None
    with lock.open(encoding="ascii"):
        assert lock_owner_of(str(lock)) == os.getpid()


@pytest.mark.parametrize("content", ["", "no pid\n", "-1\n", f"{10**30}\n", "4194304\n"])
def test_a_lock_file_without_a_pid_has_no_owner(tmp_path, content):
    lock = tmp_path / "zotd.lock"
    lock.write_text(content)
    assert lock_owner_of(str(lock)) is None
