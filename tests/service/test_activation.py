"""A socket that somebody else has bound: used as it is, and left where it is."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.needs import needs
from zotd.api.unix import RunningError, Socket, SocketError
from zotd.client.blocking import connect
from zotd.testing.live_daemon import STOP_S, place

STARTED_S = 30.0


@pytest.fixture
def path(tmp_path):
    return tmp_path / "zotd.sock"


@contextmanager
def bound(path, mode=0o600):
    """A listener of a service manager."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
        made.bind(str(path))
        path.chmod(mode)
        made.listen()
        yield made


def test_the_socket_stays_when_the_daemon_goes(path):
    with bound(path) as listener:
        taken = Socket(path, socket.socket(fileno=os.dup(listener.fileno())))
        with pytest.raises(RunningError, match="already running"):
            Socket(path)
        taken.close()
        assert path.is_socket()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(str(path))  # it waits for the next one


def test_a_removed_one_is_not_replaced_and_reported(path):
    with bound(path) as listener:
        taken = Socket(path, socket.socket(fileno=os.dup(listener.fileno())))
        assert taken.restore() is None
        path.unlink()
        with pytest.raises(SocketError, match=r"systemctl --user restart zotd\.socket"):
            taken.restore()
        assert not path.exists()
        taken.close()


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda path: path.chmod(0o666), "open to other users: set SocketMode=0600"),
        (lambda path: path.unlink(), "was removed"),
    ],
    ids=["open", "removed"],
)
def test_one_that_is_not_as_it_must_be_is_refused(path, spoil, sentence):
    with bound(path) as listener:
        spoil(path)
        with pytest.raises(SocketError, match=sentence):
            Socket(path, listener)


def test_one_where_clients_do_not_look_is_refused(path, tmp_path):
    with bound(tmp_path / "other.sock") as listener, pytest.raises(SocketError, match="clients connect to"):
        Socket(path, listener)


def test_the_first_client_starts_the_daemon_and_is_answered(tmp_path):
    """With systemd's own program: it listens, and becomes the daemon when somebody comes."""
    needs("systemd-socket-activate")
    where = place(tmp_path)
    where.home.mkdir(0o700)
    Path(where.socket).parent.mkdir(0o700)
    variables = [f"--setenv={name}={value}" for name, value in where.env.items()]
    command = ["systemd-socket-activate", f"--listen={where.socket}", "--fdname=zotd", *variables]
    command[0] = shutil.which(command[0]) or command[0]
    process = subprocess.Popen(
        [*command, sys.executable, "-P", "-m", "zotd"], stderr=subprocess.PIPE, env=where.env, text=True
    )
    assert process.stderr is not None
    assert "Listening on" in process.stderr.readline()
    with connect(where.socket, STARTED_S) as connection:
        assert connection.call("daemon.status", timeout_s=STARTED_S)["pid"] == process.pid
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=STOP_S)
    assert process.returncode == 0
    assert Path(where.socket).exists()
