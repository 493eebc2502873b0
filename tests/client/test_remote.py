"""A daemon on another machine: what is sent and received, and the error messages."""

import asyncio
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import AsyncExitStack
from types import SimpleNamespace

import aiohttp
import pytest
from aiohttp import web

from tests.client import relay
from tests.client.relay import TOKEN
from zotd.client import handshake, origin, place, remote
from zotd.client.blocking import Connection
from zotd.client.client import Client
from zotd.client.errors import (
    CallError,
    ClientError,
    ConnectionLostError,
    NoAnswerError,
    NotRunningError,
)
from zotd.testing import warm
from zotd.testing.live_daemon import ROOT
from zotd.wire import events

WAIT_S = 60


class Home:
    """The home of a user with a token."""

    def __init__(self, folder, stack, path):
        self.folder = folder
        self.path = path
        self.token_file = folder / "token"
        self.token_file.write_text(TOKEN + "\n")
        self.token_file.chmod(0o600)
        self._stack = stack

    async def serve(self, context=None):
        return await self._stack.enter_async_context(relay.serving(self.path, context))

    def env(self, url, **extra):
        return {"ZOT_HOME": str(self.folder / "zot"), "ZOT_HOST": url, "ZOT_TOKEN_FILE": str(self.token_file), **extra}

    def open(self, url, **extra):
        return place.of(self.env(url, **extra)).open()

    async def connect(self, url, **extra):
        return Connection(await asyncio.to_thread(self.open, url, **extra))

    async def refused(self, url, **extra):
        """Return the message of a connection that fails."""
        with pytest.raises(ClientError) as caught:
            await asyncio.to_thread(self.open, url, **extra)
        sentence = str(caught.value)
        assert (TOKEN in sentence, "\n" in sentence) == (False, False)
        return caught.value


@pytest.fixture
async def home(tmp_path, path):
    async with AsyncExitStack() as stack:
        yield Home(tmp_path, stack, path)
    for thread in threading.enumerate():
        if thread.name.startswith("zot to "):
            thread.join(WAIT_S)
            assert not thread.is_alive()


@pytest.fixture
async def there(home, daemon):
    """A relay that simulates the other machine, with a daemon behind it."""
    return await home.serve()


def url(there, scheme="ws", host="127.0.0.1"):
    return f"{scheme}://{host}:{there.port}"


# --- token and frames -----------------------------------------------------------------------------------------------


async def test_only_the_first_frame_contains_the_token(home, there):
    with await home.connect(url(there)) as connection:
        said = await asyncio.to_thread(connection.call, "hello", client={"name": "zot"})
        assert await asyncio.to_thread(connection.call, "ping") == {"pong": True}
        assert (said["protocol_version"], connection.server_pid) == (1, None)
    assert [(frame["type"], frame.get("token")) for frame in there.frames] == [("hello", TOKEN), ("ping", None)]
    assert not any(TOKEN in value for headers in there.requests for value in headers.values())


async def test_a_hello_is_sent_for_a_client_that_sends_none(home, there):
    with await home.connect(url(there)) as connection:
        assert await asyncio.to_thread(connection.call, "ping") == {"pong": True}
    assert [frame["type"] for frame in there.frames] == ["hello", "ping"]


@pytest.mark.parametrize("command", ["hello", "ping"])
async def test_a_refused_token_is_the_response_to_the_first_frame(home, there, command):
    home.token_file.write_text("zot_" + "w" * 43)
    with await home.connect(url(there)) as connection, pytest.raises(CallError) as caught:
        await asyncio.to_thread(connection.call, command)
    assert caught.value.code == "unauthorized"
    name = f"127.0.0.1:{there.port}"
    assert str(caught.value) == f"{name} refused the token: it may have expired or been revoked"


async def test_a_lost_remote_daemon_raises_connection_lost_error(home, there):
    there.close = 1001, ""
    with await home.connect(url(there)) as connection, pytest.raises(ConnectionLostError):
        await asyncio.to_thread(connection.call, "hello")


@pytest.mark.parametrize("command", ["hello", "ping"])
async def test_a_server_that_sends_binary_messages_is_disconnected(home, there, command):
    there.first = bytes(1000)
    with await home.connect(url(there)) as connection, pytest.raises(ConnectionLostError):
        await asyncio.to_thread(connection.call, command)
    assert [frame["type"] for frame in there.frames] == ["hello"]


@pytest.mark.parametrize("module", ["ping", "status", "sessions"])
async def test_control_characters_of_a_server_are_escaped(home, there, module):
    there.close = 4401, "\x1b]0;title\x07\x1b[2J\u202eno"
    program = await asyncio.create_subprocess_exec(
        *warm.command("zotctl", module),
        env={**os.environ, **home.env(url(there)), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    async with asyncio.timeout(WAIT_S):
        _, said = await program.communicate()
    assert (program.returncode, b"refused the token" in said) == (1, True)
    assert not set(said.decode()) & {"\x1b", "\x07", "\u202e"}


async def test_a_client_closes_the_websocket_properly(home, there):
    with await home.connect(url(there)) as connection:
        await asyncio.to_thread(connection.call, "ping")
    async with asyncio.timeout(WAIT_S):
        await there.gone.wait()
    assert there.codes == [1000]


async def test_the_typed_client_works_remotely_without_sending_its_environment(home, there):
    env = home.env("", ANTHROPIC_API_KEY="sk-mine")
    connecting = Client.connect(env=env, host=url(there), token_file=str(home.token_file))
    async with connecting as client:
        session = await client.create("/srv/app")
        seen = [event async for event in session.prompt("hi")]
        with pytest.raises(ClientError, match="absolute path"):
            await client.create("app")
    assert isinstance(seen[-1], events.Done)
    created = next(frame for frame in there.frames if frame["type"] == "session.create")
    assert (created["cwd"], created.get("env")) == ("/srv/app", None)
    assert "sk-mine" not in json.dumps(there.frames)


# --- destination of the token -----------------------------------------------------------------------------------------


async def test_a_token_is_not_sent_to_another_host(home, there):
    other = await home.serve()
    with await home.connect(url(there)) as connection:
        await asyncio.to_thread(connection.call, "ping")
    error = await home.refused(url(other))
    assert f"belongs to 127.0.0.1:{there.port} and was not sent to 127.0.0.1:{other.port}" in str(error)
    assert (other.requests, other.frames) == ([], [])


async def test_a_redirect_is_not_followed(home, there):
    other = await home.serve()
    there.answer = web.Response(status=302, headers={"Location": f"http://127.0.0.1:{other.port}/v1"})
    assert "answered with a redirect" in str(await home.refused(url(there)))
    assert other.requests == []


async def test_nothing_is_sent_to_a_localhost_that_is_another_machine():
    resolver = handshake._Resolver(is_local=True)
    with pytest.raises(OSError, match="in the clear"):
        await resolver.resolve("192.0.2.7")
    assert [found["host"] for found in await resolver.resolve("127.0.0.1", 7)] == ["127.0.0.1"]


# --- error messages -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "headers", "words"),
    [
        (403, {}, "does not accept this host name (403)"),
        (404, {}, "does not run zotd: /v1 answers with HTTP status 404"),
        (429, {"Retry-After": "7"}, "too many failed attempts (429); try again in 7 s"),
        (429, {"Retry-After": "<b>"}, "try again later"),
        (503, {}, "has reached its limit of connections (503)"),
        (200, {}, "/v1 answers with HTTP status 200"),
    ],
)
async def test_a_failed_upgrade_is_reported_in_one_sentence(home, there, status, headers, words):
    there.answer = web.Response(status=status, headers=headers)
    assert words in str(await home.refused(url(there)))


async def test_a_host_without_a_listener_is_reported(home):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        name = f"127.0.0.1:{free.getsockname()[1]}"
    error = await home.refused(f"wss://{name}")
    assert (type(error), str(error)) == (NotRunningError, f"zotd is not running: nothing listens at {name}")


async def test_an_unknown_host_name_is_reported(home):
    assert "cannot resolve no-such-host.invalid:443" in str(await home.refused("wss://no-such-host.invalid"))


async def test_a_host_that_never_responds_is_given_up():
    where = origin.parsed("ws://127.0.0.1:1")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        where = where._replace(port=silent.getsockname()[1])
        async with handshake.session(where) as session:
            with pytest.raises(NoAnswerError, match="has not answered within"):
                await handshake.connected(session, where, None, limit_s=0.1)


async def test_a_host_that_is_no_web_server_is_reported_in_one_sentence(home):
    async def noise(reader, writer):
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        writer.close()

    server = await asyncio.start_server(noise, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert "does not answer like zotd" in str(await home.refused(f"ws://127.0.0.1:{port}"))
        assert "the TLS handshake with" in str(await home.refused(f"wss://127.0.0.1:{port}"))


# --- TLS --------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def tls(home, daemon, tmp_path):
    """`tls(name)`: a relay with TLS and a certificate for that name; and the certificate of its CA."""

    async def tls(name="127.0.0.1"):
        ca, certificate = relay.authority(tmp_path, name)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        return await home.serve(context), ca

    return tls


async def test_a_private_ca_is_accepted(home, tls):
    there, ca = await tls()
    with await home.connect(url(there, "wss"), ZOT_CA_FILE=ca) as connection:
        assert await asyncio.to_thread(connection.call, "ping") == {"pong": True}


async def test_an_untrusted_certificate_is_refused(home, tls):
    there, _ = await tls()
    sentence = str(await home.refused(url(there, "wss")))
    assert f"the certificate of 127.0.0.1:{there.port} is not trusted: " in sentence
    assert "--ca-file" in sentence
    assert there.requests == []


async def test_a_certificate_for_another_name_is_refused(home, tls):
    there, ca = await tls("box.example")
    assert "is not valid for '127.0.0.1'" in str(await home.refused(url(there, "wss"), ZOT_CA_FILE=ca))
    assert there.requests == []


async def test_an_invalid_ca_file_is_reported_in_one_sentence(home, tls):
    there, _ = await tls()
    for ca in ("/nonexistent", str(home.token_file)):
        assert f"cannot use the CA file {ca}" in str(await home.refused(url(there, "wss"), ZOT_CA_FILE=ca))


# --- backpressure -------------------------------------------------------------------------------------------------------


def network(**ways):
    """The part of a WebSocket that is used."""
    return SimpleNamespace(**ways)


async def settled():
    """Let the loop run until nothing more happens by itself."""
    for _ in range(500):
        await asyncio.sleep(0)


async def test_reading_pauses_while_the_client_does_not_read():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    frame = "x" * 65536
    count = 0

    async def receive():
        nonlocal count
        count += 1
        return SimpleNamespace(type=aiohttp.WSMsgType.TEXT, data=frame)

    _, writer = await asyncio.open_unix_connection(sock=theirs)
    async with asyncio.TaskGroup() as tasks:
        carrying = tasks.create_task(remote._receive(network(receive=receive), writer))
        await settled()
        assert 0 < count * len(frame) < 2 * 1024 * 1024
        before = count
        while count == before:  # continues as soon as data is read
            await asyncio.get_running_loop().sock_recv(ours, 65536)
            await settled()
        carrying.cancel()
    ours.close()
    writer.close()


async def test_the_client_is_slowed_down_by_a_slow_network():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    stuck = asyncio.Event()

    async def send_str(_):
        await stuck.wait()

    reader, writer = await asyncio.open_unix_connection(sock=theirs, limit=65536)
    async with asyncio.TaskGroup() as tasks:
        carrying = tasks.create_task(remote._send(reader, network(send_str=send_str)))
        sent = 0
        try:
            while sent < 2**26:
                sent += ours.send(b"x" * 1023 + b"\n")
                await asyncio.sleep(0)
        except BlockingIOError:
            pass
        assert sent < 2 * 1024 * 1024
        carrying.cancel()
    ours.close()
    writer.close()


# --- interruption -------------------------------------------------------------------------------------------------------


async def test_an_interrupted_ping_ends_silently(home):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        program = await asyncio.create_subprocess_exec(
            *warm.command("zotctl", "ping"),
            env={**os.environ, **home.env(f"ws://127.0.0.1:{silent.getsockname()[1]}"), "PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
        )
        connection, _ = await asyncio.to_thread(silent.accept)
        program.send_signal(signal.SIGINT)
        async with asyncio.timeout(WAIT_S):
            _, said = await program.communicate()
        connection.close()
    assert (program.returncode, said) == (130, b"")


# --- imports ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "from zotctl.__main__ import main; main(['ping'])",
        "from zotctl.__main__ import main; main(['sessions'])",
        "from zotd.cli import main; main(['-p', 'hi'])",
        "from zotd.client.client import Client",
        "from zotd.client.typed import BlockingClient",
    ],
)
def test_the_remote_part_is_not_imported_for_a_local_daemon(daemon, path, tmp_path, code):
    script = f"import sys; {code}; sys.exit(str([m for m in ('aiohttp', 'zotd.client.remote') if m in sys.modules]))"
    env = {"ZOTD_SOCKET": path, "ZOT_HOME": str(tmp_path / "zot"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.stderr.endswith("[]\n")
