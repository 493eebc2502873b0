"""Starting the daemon if none is running."""

import fcntl
import os
import select
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

import zotd
from zotd import paths
from zotd.client import autostart
from zotd.client.blocking import Connection, connect
from zotd.client.errors import NotRunningError, StartError
from zotd.client.fields import number

FAKE = (sys.executable, "-P", "-m", "zotd.testing.fake_daemon")


@pytest.fixture
def env(tmp_path):
    root = str(Path(zotd.__file__).parent.parent)
    return {"ZOT_HOME": str(tmp_path / "home"), "PYTHONPATH": root, "ZOT_X_TOKEN": "secret", "PATH": os.environ["PATH"]}


@pytest.fixture
def path(env):
    """Environment for a daemon that is stopped at the end of the test."""
    where = paths.socket_path(env)
    yield where
    try:
        connection = connect(where)
    except NotRunningError:
        return
    with connection:
        process = os.pidfd_open(number(connection.call("hello"), "pid"))
        connection.call("daemon.shutdown")
        assert select.select([process], [], [], 5)[0]
        os.close(process)


def test_fifty_clients_at_once_get_one_daemon(env, path):
    def pid(_):
        with Connection(autostart.ensure(path, env, FAKE)) as connection:
            return connection.call("hello")["pid"]

    with ThreadPoolExecutor(50) as threads:
        assert len(set(threads.map(pid, range(50)))) == 1
    assert Path(paths.start_log(env)).read_text() == ""  # no second daemon was started and refused


def test_the_started_daemon_is_detached_from_the_client(env, path):
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)
    with Connection(autostart.ensure(path, env, FAKE)) as connection:
        process = psutil.Process(number(connection.call("hello"), "pid"))
    os.close(write_end)
    assert os.read(read_end, 1) == b""  # it does not hold our descriptors open
    os.close(read_end)
    assert process not in psutil.Process().children(recursive=True)
    assert process.cwd() == "/"
    assert process.terminal() is None
    assert os.getsid(process.pid) not in {os.getsid(0), process.pid}
    assert "ZOT_X_TOKEN" not in process.environ()
    assert process.environ()["ZOT_HOME"] == env["ZOT_HOME"]


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        ("error", "the database is from a newer version"),
        ("crash", "RuntimeError: the disk is full"),
        ("silent", "it exited without a message"),
    ],
)
def test_a_failed_start_reports_the_daemons_reason_in_one_line(env, path, failure, reason):
    with pytest.raises(StartError) as caught:
        autostart.ensure(path, env | {"FAKE_START": failure}, FAKE)
    assert str(caught.value) == f"cannot start zotd: {reason} (log: {paths.start_log(env)})"


def test_the_reported_reason_is_that_of_the_latest_start(env, path):
    for failure, reason in [("crash", "the disk is full"), ("silent", "it exited without a message")]:
        with pytest.raises(StartError, match=reason):
            autostart.ensure(path, env | {"FAKE_START": failure}, FAKE)


def test_a_missing_program_is_a_start_error(env, path):
    with pytest.raises(StartError, match="No such file"):
        autostart.ensure(path, env, ["/nonexistent/python"])


def test_an_open_socket_directory_is_refused_before_any_file_is_created(env, path):
    folder = Path(path).parent
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    with pytest.raises(StartError, match="open to other users"):
        autostart.ensure(path, env, FAKE)
    assert list(folder.iterdir()) == []


def test_a_client_waiting_for_the_lock_uses_a_daemon_started_meanwhile(env, path):
    paths.check_private_dir(str(Path(path).parent))
    with Path(paths.start_lock(path)).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another client is starting it
        found = []
        waiting = threading.Thread(target=lambda: found.append(autostart.ensure(path, env, FAKE)))
        waiting.start()
        with autostart._start(path, env, FAKE):
            waiting.join()
        found[0].close()


def test_a_long_start_log_is_rotated(env, path):
    log = Path(paths.start_log(env))
    paths.make_private_dir(str(log.parent))
    log.write_bytes(b"x" * (autostart.LOG_LIMIT + 1))
    autostart.ensure(path, env, FAKE).close()
    assert log.stat().st_size == 0
    assert log.stat().st_mode & 0o077 == 0
    assert Path(f"{log}.1").stat().st_size == autostart.LOG_LIMIT + 1


def test_the_daemon_starts_even_if_its_log_cannot_be_opened(env, path, tmp_path):
    log = Path(paths.start_log(env))
    paths.make_private_dir(str(log.parent))
    log.symlink_to(tmp_path / "elsewhere")
    autostart.ensure(path, env, FAKE).close()
    assert log.is_symlink()
    assert not (tmp_path / "elsewhere").exists()
