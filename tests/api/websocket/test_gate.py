"""Requests to the WebSocket door are checked by Host, Origin and URL before a token is looked at."""

from itertools import product

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zotd.api.websocket.gate import OriginCheck
from zotd.api.websocket.throttle import BURST, DELAY_S, MAX_SOURCES, Throttle, source_of
from zotd.config import WebsocketSection
from zotd.testing.live_daemon import serving
from zotd.testing.wire_client import WireClient
from zotd.wire.version import VERSION

GATE = OriginCheck.of(
    WebsocketSection(listen="127.0.0.1:8765", hosts=("Zot.Example", "box:9"), origins=("https://ui.example",)), 8765
)

ADMITTED_HOSTS = [
    *("localhost:8765", "LOCALHOST:8765", "127.0.0.1:8765", "[::1]:8765"),
    *("zot.example", "ZOT.example:8765", "box:9"),
]

REFUSED_HOSTS = [
    *("", " ", "localhost", "127.0.0.1", "[::1]", "localhost:8766", "localhost:08765", "localhost:8765 ", "::1:8765"),
    *("evil.example", "evil.example:8765", "127.0.0.1.nip.io:8765", "localhost.:8765", "localhost.evil.com:8765"),
    *("xlocalhost:8765", "localhost:8765.evil.com", "localhost:8765@evil.com", "localhost@evil.com:8765"),
    *("user@localhost:8765", "user:localhost:8765", "[::ffff:127.0.0.1]:8765", "[::]:8765", "0.0.0.0:8765"),
    *("127.1:8765", "2130706433:8765", "0x7f.1:8765", "127.0.0.1:8765,evil", "localhost:8765/", "box", "box:8765"),
    *("zot.example.evil.com", "evil.zot.example", "zot.example.", "zot.example:9", "localhost\t:8765"),
]

REFUSED_ORIGINS = [
    *("null", "", "*", "https://evil.example", "http://localhost:8765.evil.com", "https://localhost:8765", "file://"),
    *("http://localhost", "http://localhost:8766", "http://127.0.0.1:8765", "http://localhost:8765/", "HTTP://x"),
    *("http://user@localhost:8765", "http://localhost:8765@evil.example", "https://ui.example.evil.com"),
    *("https://ui.example/", "https://ui.example:443", "http://ui.example", "https://UI.example"),
]


def status(hosts, origins=(), target="/v1", gate=GATE):
    refusal = gate.refusal(target, hosts, origins)
    return None if refusal is None else refusal.status


@pytest.mark.parametrize("host", ADMITTED_HOSTS)
def test_the_names_of_this_machine_are_accepted_as_host(host):
    assert status([host]) is None


@pytest.mark.parametrize("host", REFUSED_HOSTS)
def test_similar_host_names_are_refused(host):
    assert status([host]) == 403


@pytest.mark.parametrize("origin", REFUSED_ORIGINS)
def test_pages_of_other_origins_are_refused(origin):
    assert status(["localhost:8765"], [origin]) == 403


@pytest.mark.parametrize("host", ADMITTED_HOSTS)
def test_own_and_configured_origins_are_accepted(host):
    assert status([host], [f"http://{host.lower()}"]) is None
    assert status([host], ["https://ui.example"]) is None


@given(st.text(max_size=40).filter(lambda name: name.lower() not in {*map(str.lower, ADMITTED_HOSTS)}))
def test_any_other_host_is_refused(name):
    assert status([name]) == 403
    assert status([name], [f"http://{name}"]) == 403


@given(st.lists(st.sampled_from(ADMITTED_HOSTS), max_size=3).filter(lambda hosts: len(hosts) != 1))
def test_a_request_must_have_exactly_one_host(hosts):
    assert status(hosts) == 400


def test_a_request_with_two_origins_is_refused():
    assert status(["localhost:8765"], ["http://localhost:8765"] * 2) == 403


@pytest.mark.parametrize("target", ["http://localhost:8765/v1", "localhost:8765", "*", "//evil.example/v1?x", "/v1?"])
def test_a_target_must_be_a_path_without_query(target):
    assert status(["localhost:8765"], target=target) == 400


def test_the_port_may_be_omitted_only_if_it_is_the_default():
    secure = WebsocketSection(listen="127.0.0.1:443", tls_cert="/c", tls_key="/k")
    assert status(["localhost"], ["https://localhost"], gate=OriginCheck.of(secure, 443)) is None
    assert status(["localhost"], gate=OriginCheck.of(secure, 80)) == 403
    assert status(["localhost"], gate=OriginCheck.of(WebsocketSection(), 80)) is None


# --- the same over the network ---


ANOTHER_NAME: tuple[list[str], ...] = (
    ["evil.example"],
    ["127.0.0.1.nip.io"],
    [],
    ["localhost:1", "evil.example"],
    ["localhost"],
)


async def test_a_request_for_another_host_gets_nothing(door, token):
    for path, host in product(("/", "/v1", "/metrics", "/healthz", "/x", "/v1/zot_x"), ANOTHER_NAME):
        code, headers, body = await (await door.visitor()).request(path, host=host)
        assert code in {400, 403}, (path, host)
        assert token not in body
        assert VERSION not in body + str(headers)
        assert "aiohttp" not in body + str(headers)


async def test_a_page_of_another_origin_is_refused_before_the_upgrade(door, token):
    for origin in ("https://evil.example", "null", "http://localhost:1.evil.com"):
        assert await (await door.visitor()).upgrade(Origin=origin) == 403, origin
        code, headers, _ = await (await door.visitor()).request("/healthz", Origin=origin)
        assert code == 403, origin
        assert not any(name.startswith("access-control") for name in headers)


async def test_the_served_page_may_connect(door, token):
    web = await door.visitor()
    assert await web.upgrade(Origin=f"http://{web.host}") == 101
    assert (await web.hello(token))["role"] == "approve"


async def test_methods_other_than_get_are_refused_without_cors_headers(door):
    body = b'{"type":"daemon.shutdown"}'
    said = {"Content_Type": "text/plain", "Content_Length": str(len(body))}
    for method, path in product(("OPTIONS", "POST", "PUT", "DELETE", "HEAD", "TRACE"), ("/v1", "/", "/metrics")):
        code, headers, _ = await (await door.visitor()).request(path, method=method, body=body, **said)
        assert code == 405, (method, path)
        assert not any(name.startswith("access-control") for name in headers)
    assert await door.admin.ask("ping") == {"pong": True}


async def test_a_cors_preflight_is_refused(door):
    for origin in ("https://evil.example", f"http://{door.url.split('/')[2]}"):
        web = await door.visitor()
        code, headers, _ = await web.request(
            "/v1", method="OPTIONS", Origin=origin, Access_Control_Request_Method="POST"
        )
        assert code in {403, 405}
        assert not any(name.startswith("access-control") for name in headers)


async def test_a_token_in_a_url_is_refused_and_not_logged(door, token, caplog):
    secret = "a-secret-that-nobody-may-read"
    for query in (f"token=zot_{secret}", f"access_token={secret}", "x", ""):
        code, _, body = await (await door.visitor()).request(f"/v1?{query}")
        assert code == 400, query
        assert secret not in body + caplog.text
        assert "send the token in the first frame" in body


async def test_every_response_has_security_headers(door):
    for path, expected in (("/healthz", 200), ("/", 200), ("/v1", 426), ("/metrics", 401), ("/x", 404)):
        code, headers, _ = await (await door.visitor()).request(path)
        assert code == expected
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["connection"].lower() in {"close", "upgrade"}


async def test_an_ambiguous_upgrade_request_is_refused(door, token):
    for status, options in (
        (426, {"version": "HTTP/1.0"}),
        (426, {"Content_Length": "5", "body": b"hello"}),
        (426, {"Transfer_Encoding": "chunked", "body": b"0\r\n\r\n"}),
        (400, {"Sec_websocket_key": "AAAAAAAAAAAAAAAAAAAAAA=="}),  # a second key
        (400, {"Sec_WebSocket_Version": "8"}),
        (404, {"path": "//v1"}),
        (404, {"path": "/v1/"}),
        (404, {"path": "/%761"}),
    ):
        assert await (await door.visitor()).upgrade(**options) == status, options


async def test_malformed_http_is_answered_without_naming_the_server(door, caplog):
    web = await door.visitor()
    web.write(b"\x16\x03\x01 zot_secret\r\n\r\n")
    said = await web.reader.read(-1)
    assert said.startswith((b"HTTP/1.0 400", b"HTTP/1.1 400"))
    assert b"aiohttp" not in said
    assert "zot_secret" not in caplog.text


# --- closed ---


async def test_the_websocket_door_is_closed_by_default(tmp_path):
    async with serving(tmp_path) as place, WireClient.connect(place.socket) as client:
        assert (await client.ask("daemon.status"))["websocket"] is None
    listening = [one for one in psutil.Process().net_connections("tcp") if one.status == psutil.CONN_LISTEN]
    assert listening == []


# --- throttle ---


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def test_ten_failures_a_minute_are_refused_without_delay():
    clock = Clock()
    throttle = Throttle(clock)
    assert [throttle.failed("a") for _ in range(BURST)] == [0.0] * BURST
    for _ in range(1000):
        assert throttle.failed("a") == DELAY_S
        clock.now += 0.001
    assert throttle.failed("b") == 0.0
    clock.now += 60
    assert [throttle.failed("a") for _ in range(BURST + 1)] == [0.0] * BURST + [DELAY_S]


def test_the_number_of_remembered_addresses_is_limited():
    throttle = Throttle(Clock())
    for number in range(3 * MAX_SOURCES):
        throttle.failed(str(number))
    assert len(throttle._sources) == MAX_SOURCES


def test_addresses_of_one_ipv6_network_count_as_one():
    assert source_of("2001:db8:1:2::1") == source_of("2001:db8:1:2:ffff::9") != source_of("2001:db8:1:3::1")
    assert source_of("::ffff:10.0.0.1") == source_of("10.0.0.1") == "10.0.0.1"
    assert source_of("fe80::1%eth0") == "fe80::/64"
