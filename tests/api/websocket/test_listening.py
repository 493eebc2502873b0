"""Addresses at which the WebSocket door listens or refuses to listen."""

import os
import socket
import ssl
import subprocess
import sys

import pytest

from tests.api.web import visitor
from tests.needs import needs
from zotd.api.websocket.listening import prepared
from zotd.config import ConfigError, WebsocketSection
from zotd.testing.live_daemon import DaemonProcess, place, serving
from zotd.testing.wire_client import WireClient


def refused_start(tmp_path, extra):
    daemon = DaemonProcess(tmp_path, extra)
    said = daemon.try_to_start()
    assert daemon.wait() == 1
    return said


@pytest.mark.parametrize("address", ["0.0.0.0:8765", "[::]:8765", "192.0.2.1:8765"])
async def test_an_address_reachable_from_other_machines_requires_tls(address):
    with pytest.raises(
        ConfigError, match=r"TLS is required, because other machines can reach .*; set tls_cert and tls_key"
    ):
        await prepared(WebsocketSection(listen=address))


async def test_a_name_is_checked_by_the_addresses_it_resolves_to():
    name = socket.gethostname()
    addresses = {str(found[4][0]) for found in socket.getaddrinfo(name, 1)}
    if all(address.startswith("127.") or address == "::1" for address in addresses):
        assert await prepared(WebsocketSection(listen=f"{name}:8765")) is not None
    else:
        with pytest.raises(ConfigError, match="TLS is required"):
            await prepared(WebsocketSection(listen=f"{name}:8765"))
    assert await prepared(WebsocketSection(listen="localhost:8765")) is not None


def test_the_daemon_does_not_start_with_an_unencrypted_public_address(tmp_path):
    said = refused_start(tmp_path, {"ZOT_WEBSOCKET_LISTEN": "0.0.0.0:8765"})
    assert said.startswith("error websocket.listen: TLS is required, because other machines can reach 0.0.0.0:8765")
    file = place(tmp_path).home / "config.toml"
    file.write_text('[websocket]\nlisten = "[::]:8765"\n')
    assert refused_start(tmp_path, {}).startswith(
        "error websocket.listen: TLS is required, because other machines can reach [::]:8765"
    )


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"listen": "127.0.0.1:70000"}, "70000 is not a port"),
        ({"listen": "no.such.host.invalid:1"}, 'cannot resolve "no.such.host.invalid"'),
        ({"listen": "127.0.0.1:1", "tls_cert": "/no/cert", "tls_key": "/no/key"}, "cannot be used: No such file"),
    ],
)
async def test_an_invalid_door_configuration_is_reported_in_one_sentence(settings, sentence):
    with pytest.raises(ConfigError, match=sentence):
        await prepared(WebsocketSection(**settings))


async def test_a_port_in_use_is_reported_and_the_unix_socket_still_works(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        env = {"ZOT_WEBSOCKET_LISTEN": f"127.0.0.1:{port}"}
        async with serving(tmp_path, env) as where, WireClient.connect(where.socket) as client:
            status = await client.ask("daemon.status")
    assert status["websocket"] is None
    said = str(status["warnings"])
    assert f"the WebSocket door is closed: port {port} is in use by " in said
    assert f"(pid {os.getpid()})" in said


@pytest.fixture
def certificate(tmp_path):
    """Paths of a certificate for this machine and of its key."""
    needs("openssl")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", *kind, *subject, "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key


async def test_with_a_certificate_only_tls_is_accepted(tmp_path, certificate):
    cert, key = certificate
    env = {
        "ZOT_WEBSOCKET_LISTEN": "0.0.0.0:0",
        "ZOT_WEBSOCKET_TLS_CERT": str(cert),
        "ZOT_WEBSOCKET_TLS_KEY": str(key),
    }
    async with serving(tmp_path, env) as where, WireClient.connect(where.socket) as admin:
        await admin.ask("hello", role="admin")
        url = str((await admin.ask("daemon.status"))["websocket"]).replace("0.0.0.0", "127.0.0.1")
        assert url.startswith("wss://")
        token = (await admin.ask("token.create", name="t", role="read"))["token"]
        trusting = ssl.create_default_context(cafile=str(cert))
        async with visitor(url, tls=trusting) as web:
            assert await web.upgrade(Origin=f"https://{web.host}") == 101
            await web.hello(token)
            assert await web.ask("ping") == {"pong": True}
            await admin.ask("token.revoke", name="t")
            assert await web.end() == 4401
        async with visitor(url) as plain:
            assert (await plain.request("/healthz"))[0] == 0


EXPENSIVE = ("aiohttp", "prometheus_client", "opentelemetry", "google.protobuf", "requests")


def test_what_only_the_websocket_door_and_telemetry_need_is_not_imported_without_them():
    code = f"import sys, zotd.app; print([name for name in {EXPENSIVE} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
