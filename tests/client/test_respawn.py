"""A daemon that does not live is not started for ever."""

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
    """Whatever has been started there is stopped at the end."""
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
    Path(path).unlink(missing_ok=True)  # the fake one leaves it


class gone:  # noqa: N801  (reads as what it does)
    """Waits, at the end of the block, until the process has ended."""

    def __init__(self, pid):
        self._process = os.pidfd_open(pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        assert select.select([self._process], [], [], 20)[0]
        os.close(self._process)


def started(path, env, command=autostart.DAEMON):
    """Have it started; its pid."""
    with Connection(autostart.ensure(path, env, command)) as connection:
        return number(connection.call("hello"), "pid")


def killed(path, env):
    pid = started(path, env)
    with gone(pid):
        os.kill(pid, signal.SIGKILL)
    return pid


@pytest.fixture
def forgetful():
    """As another program each time: this one remembers what it has started."""

    def forget():
        autostart._served.clear()
        autostart._started_again.clear()

    return forget


def test_after_three_that_were_killed_nobody_starts_a_fourth_until_a_person_does(path, env, forgetful):
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


def test_it_is_started_again_when_time_has_passed(path, env, forgetful):
    for _ in range(3):
        killed(path, env)
        forgetful()
    ledger = Path(f"{path}.starts")
    ledger.write_text(
        json.dumps([[at - respawn_limit.WINDOW_S, *rest] for at, *rest in json.loads(ledger.read_text())])
    )
    assert started(path, env) > 0


def test_those_that_never_served_count_and_the_last_reason_is_told(path, env):
    for failure in ["crash", "silent", "error"]:
        with pytest.raises(StartError, match="cannot start zotd"):
            autostart.ensure(path, env | {"FAKE_START": failure}, FAKE)
    with pytest.raises(StartError, match="last because: the database is from a newer version \\(log: "):
        started(path, env)


def test_those_before_the_configuration_was_mended_do_not_count(path, env):
    config = Path(env["ZOT_HOME"]) / "config.toml"
    config.parent.mkdir(mode=0o700)
    config.write_text("log_level = 'loud'\n")
    for sentence in [*["cannot start zotd"] * 3, "failed each time, last because"]:
        with pytest.raises(StartError, match=f"{sentence}.*log_level must be"):
            started(path, env)
    config.unlink()
    assert started(path, env) > 0


def test_those_that_were_stopped_do_not_count(path, env):
    for _ in range(4):
        started(path, env, FAKE)
        stop(path)


@pytest.mark.parametrize(("lived_s", "counts"), [(0, True), (respawn_limit.LIVED_S + 1, False)])
def test_one_that_has_lived_for_a_while_before_it_was_killed_does_not_count(path, env, lived_s, counts):
    paths.check_private_dir(str(Path(path).parent))
    Path(path).touch()  # what one leaves that is killed
    now = time.monotonic()
    failed = [[now - 30, 0, 0, "no"], [now - 29, 0, 0, "no"]]
    Path(f"{path}.starts").write_text(json.dumps([*failed, [now - lived_s, 0, 0, None]]))
    complaint = respawn_limit.RespawnLimit(path, env).complaint()
    Path(path).unlink()
    assert (complaint is not None) is counts


def test_a_ledger_that_is_damaged_or_from_before_a_reboot_is_none(path, env):
    paths.check_private_dir(str(Path(path).parent))
    for content in ["{", "[1]", json.dumps([[1e12, 0, 0, "x"]] * 3), '[["x", "y", "z"]]']:
        Path(f"{path}.starts").write_text(content)
        assert started(path, env, FAKE) > 0
        stop(path)


def test_a_process_starts_one_that_was_killed_under_it_once_and_not_twice(path, env):
    killed(path, env)
    killed(path, env)
    with pytest.raises(StartError, match="this program had restarted it once"):
        started(path, env)


def test_while_a_restart_goes_on_others_wait_for_what_it_starts(path, env):
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


def test_a_lock_file_with_the_pid_of_somebody_else_is_held_by_nobody(tmp_path):
    """Pids change hands: a process that lives is not the daemon for that."""
    lock = tmp_path / "zotd.lock"
    lock.write_text(f"{os.getpid()}\n")
    assert lock_owner_of(str(lock)) is None
    with lock.open(encoding="ascii"):
        assert lock_owner_of(str(lock)) == os.getpid()


@pytest.mark.parametrize("content", ["", "no pid\n", "-1\n", f"{10**30}\n", "4194304\n"])
def test_a_lock_file_that_names_no_process_is_held_by_nobody(tmp_path, content):
    lock = tmp_path / "zotd.lock"
    lock.write_text(content)
    assert lock_owner_of(str(lock)) is None
