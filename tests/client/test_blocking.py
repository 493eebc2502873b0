"""The blocking connection: dicts over a socket."""

import os
import socket
import struct
import subprocess
import sys
import threading

import pytest

from zotd.client import blocking
from zotd.client.errors import CallError, ClientError, ConnectionLostError, NoAnswerError, NotRunningError


def serve_once(path, work):
    """Accept one connection in a thread and pass it to `work`."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(1)

    def accept():
        peer, _ = listener.accept()
        with peer, listener:
            work(peer)

    thread = threading.Thread(target=accept)
    thread.start()
    return thread


def test_a_call_returns_the_data_of_its_response(daemon, path):
    with blocking.connect(path) as connection:
        assert connection.call("ping") == {"pong": True}
        assert connection.call("hello")["pid"] == os.getpid()


def test_a_refused_command_raises_an_error_with_sentence_and_code(daemon, path):
    with blocking.connect(path) as connection:
        with pytest.raises(CallError, match="there is no session s_x") as caught:
            connection.call("get_state", session="s_x")
        assert caught.value.code == "not_found"
        assert connection.call("ping") == {"pong": True}


def test_a_socket_without_a_listener_raises_not_running_error(path):
    with pytest.raises(NotRunningError, match=path):
        blocking.connect(path)
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(path)
    with pytest.raises(NotRunningError):
        blocking.connect(path)


def test_a_daemon_that_never_answers_raises_no_answer_error(daemon, path):
    daemon.wedged = True
    with blocking.connect(path) as connection, pytest.raises(NoAnswerError):
        connection.call("ping", timeout_s=0.05)


def test_a_listener_with_a_full_queue_raises_no_answer_error(path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(0)
        waiting = socket.socket(socket.AF_UNIX)
        waiting.connect(path)
        with waiting, pytest.raises(NoAnswerError, match="hangs"):
            blocking.connect(path, timeout_s=0.05)


def test_nothing_is_sent_to_another_users_daemon(path):
    if os.geteuid() != 0:
        return  # only root can become another user
    script = (
        "import os, socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); os.chmod(sys.argv[1], 0o777);"
        "os.setuid(12345); s.listen(); print('ready', flush=True); c, _ = s.accept(); print(c.recv(100))"
    )
    command = [sys.executable, "-c", script, path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        with pytest.raises(ClientError, match="user 12345"):
            blocking.connect(path)
        assert other.stdout.readline() == "b''\n"


def test_events_before_a_response_are_kept_in_order(path):
    def work(peer):
        peer.recv(1000)
        peer.sendall(b'{"type":"a"}\n\n{"type":"b"}\n{"type":"response","id":7}\n')
        peer.sendall(b'{"type":"response","id":1,"success":true}\n{"type":"c"}\n')

    thread = serve_once(path, work)
    with blocking.connect(path) as connection:
        assert connection.call("ping") == {}
        events = connection.events()
        assert [next(events)["type"] for _ in range(3)] == ["a", "b", "c"]
        with pytest.raises(ConnectionLostError):
            next(events)
    thread.join()


def test_lines_do_not_depend_on_how_bytes_are_divided(path):
    line = '{"type":"text_delta","delta":"\u2028\u0085é"}\n'.encode()

    def work(peer):
        for byte in line * 2:
            peer.send(bytes([byte]))

    thread = serve_once(path, work)
    with blocking.connect(path) as connection:
        lines = connection.lines()
        assert [next(lines)[0] for _ in range(2)] == [line[:-1]] * 2
    thread.join()


def test_an_endless_line_ends_the_connection(path):
    def work(peer):
        try:
            while True:
                peer.sendall(b"x" * 1_000_000)
        except OSError:
            pass

    thread = serve_once(path, work)
    with blocking.connect(path) as connection, pytest.raises(ConnectionLostError, match="4 MiB"):
        next(connection.events())
    thread.join()


@pytest.mark.parametrize("line", [b"hello\n", b"[1]\n", b"\xff\n", b"[" * 100_000 + b"\n"])
def test_a_line_that_is_no_frame_ends_the_connection_with_an_error(path, line):
    thread = serve_once(path, lambda peer: peer.sendall(line))
    with blocking.connect(path) as connection, pytest.raises(ConnectionLostError, match="is it zotd"):
        next(connection.events())
    thread.join()


def test_a_wait_can_be_interrupted_without_losing_data(daemon, path):
    class StopError(Exception):
        pass

    interruptions = [False, True, False, False]

    def wait(descriptor, timeout_s):
        if interruptions and interruptions.pop(0):
            raise StopError
        return blocking.readable(descriptor, timeout_s)

    with blocking.Connection(blocking.open_socket(path), wait) as connection:
        assert connection.call("ping") == {"pong": True}
        with pytest.raises(StopError):
            connection.call("ping")
        assert connection.call("ping") == {"pong": True}


def test_the_blocking_client_imports_no_slow_modules():
    heavy = "asyncio msgspec argparse pathlib typing dataclasses inspect subprocess threading logging"
    script = f"import sys, zotd.client.blocking, zotd.paths; print([m for m in {heavy.split()} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_peer_of_a_socket_pair_is_this_process():
    one, two = socket.socketpair()
    with one, two:
        assert blocking.peer(one) == (os.getpid(), os.geteuid())
        assert struct.calcsize("3i") == 12
