"""The proxy over real sockets: what clients get, where it connects, and what it records."""

import asyncio
import os
import socket
import ssl
import subprocess
import sys
from ipaddress import ip_address

import pytest
import trustme

from tests.needs import needs
from tests.proxy.conftest import CONNECTED, connect_to, echo, exchange, handed_over, http, serving
from zotd.proxy import HostDecision
from zotd.proxy.accepting import MAX_CONNECTIONS
from zotd.proxy.http import HEAD_BYTES
from zotd.proxy.outcomes import ProxyOutcome


async def test_a_tunnel_to_an_allowed_host_passes_bytes_and_each_end_by_itself(world):
    async with serving(echo) as port:
        outlet = await world.outlet(f"server.example:{port}", f"127.0.0.1:{port}")
        # `echo` answers only after the end of what is sent.
        assert await exchange(outlet, connect_to(f"server.example:{port}", b"hello")) == CONNECTED + b"hello"
    record = await world.next_record()
    assert (record.who, record.host, record.port) == ("tests", "server.example", port)
    assert (record.outcome, record.reason, record.address) == (ProxyOutcome.ALLOWED, "", "127.0.0.1")
    assert (record.sent, record.received) == (5, 5)


async def test_a_request_with_a_url_reaches_the_host_of_the_url(world):
    async with serving(http) as port:
        outlet = await world.outlet(f"server.example:{port}", f"127.0.0.1:{port}")
        head = (
            f"GET http://Server.Example:{port}/a?b=1 HTTP/1.1\r\nHost: other.example\r\nAccept: */*\r\n"
            "Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic eA==\r\nConnection: keep-alive, X-Own\r\n"
            "X-Own: 1\r\n\r\n"
        )
        answer = await exchange(outlet, head.encode())
    assert answer.partition(b"\r\n\r\n")[2].decode() == (
        f"GET /a?b=1 HTTP/1.1\r\nHost: server.example:{port}\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    )


async def test_a_body_is_passed_on(world):
    async with serving(echo) as port:
        outlet = await world.outlet(f"127.0.0.1:{port}")
        answer = await exchange(outlet, f"POST http://127.0.0.1:{port} HTTP/1.1\r\nX: 1\r\n\r\nthe body".encode())
    assert answer.startswith(b"POST / HTTP/1.1\r\n")
    assert answer.endswith(b"\r\n\r\nthe body")


async def test_a_host_that_is_not_allowed_is_refused_in_the_status_line_and_recorded(world):
    outlet = await world.outlet("server.example")
    for request in (connect_to("evil.example:443"), b"GET http://evil.example:443/ HTTP/1.1\r\n\r\n"):
        reason = b"zot: evil.example:443 is not on the list of allowed hosts"
        answer = await exchange(outlet, request)
        assert answer.startswith(b"HTTP/1.1 403 " + reason + b"\r\n")
        assert answer.endswith(b"\r\n\r\n" + reason + b"\n")
        record = await world.next_record()
        assert (record.outcome, record.address) == (ProxyOutcome.REFUSED, "")
        assert record.reason == reason.decode().removeprefix("zot: ")


@pytest.mark.parametrize("name", ["intranet.example", "metadata.example", "mapped.example"])
async def test_a_name_that_leads_to_a_special_address_is_refused(world, name):
    outlet = await world.outlet("*:*")
    answer = await exchange(outlet, connect_to(f"{name}:80"))
    assert answer.startswith(f"HTTP/1.1 403 zot: {name} leads to a ".encode())


@pytest.mark.parametrize(
    "literal",
    ["127.0.0.1", "2130706433", "0x7f.1", "017700000001", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "0"],
)
async def test_no_spelling_of_a_special_address_is_allowed_by_a_rule_for_names(world, literal):
    outlet = await world.outlet("*:*")
    assert (await exchange(outlet, connect_to(f"{literal}:80"))).startswith(b"HTTP/1.1 403 zot: ")


async def test_a_name_is_resolved_once_and_the_connection_goes_to_the_address_that_was_checked(world):
    answers = iter([["127.0.0.1"], ["127.0.0.2"]])

    async def rebinding(name):
        return [ip_address(address) for address in next(answers)]

    async with serving(echo) as port:
        allowed = world.proxy.outlet("tests", Everything(), rebinding)
        outlet = await handed_over(allowed.admit())
        await exchange(outlet, connect_to(f"rebinding.example:{port}", b"x"))
    assert (await world.next_record()).address == "127.0.0.1"
    assert list(answers) == [["127.0.0.2"]]


class Everything:
    async def decide(self, _):
        return HostDecision(allowed=True)


async def test_a_host_that_does_not_exist_or_does_not_listen_is_a_bad_gateway(world):
    closed = socket.create_server(("127.0.0.1", 0))
    port = closed.getsockname()[1]
    closed.close()
    outlet = await world.outlet("absent.example", f"127.0.0.1:{port}")
    assert (await exchange(outlet, connect_to("absent.example:443"))).startswith(
        b"HTTP/1.1 502 zot: the address of absent.example was not found"
    )
    assert (await world.next_record()).outcome is ProxyOutcome.UNREACHABLE
    answer = await exchange(outlet, connect_to(f"127.0.0.1:{port}"))
    assert answer.startswith(f"HTTP/1.1 502 zot: 127.0.0.1:{port} cannot be reached: ".encode())


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: server.example\r\n\r\n", 400),
        (b"GET https://server.example/ HTTP/1.1\r\n\r\n", 400),
        (b"GET http://user@server.example/ HTTP/1.1\r\n\r\n", 400),
        (b"GET http://server.example\\@evil.example/ HTTP/1.1\r\n\r\n", 400),
        (b"GET http:///x HTTP/1.1\r\n\r\n", 400),
        (b"GET http://server.example/ HTTP/2\r\n\r\n", 400),
        (b"GET http://server.example/\r\n\r\n", 400),
        (b"GET http://server.example/ HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET http://server.example/ HTTP/1.1\r\n folded: 1\r\n\r\n", 400),
        (b"CONNECT server.example HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT server.example:0 HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT http://server.example:80 HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT \xff.example:80 HTTP/1.1\r\n\r\n", 400),
        (b"GET http://server.example/ HTTP/1.1\r\nX: " + b"x" * (2 * HEAD_BYTES) + b"\r\n\r\n", 431),
    ],
)
async def test_a_malformed_request_is_answered_and_connects_to_nothing(world, request_, status):
    outlet = await world.outlet("server.example")
    assert (await exchange(outlet, request_)).startswith(f"HTTP/1.1 {status} zot: ".encode())
    assert world.records == []


@pytest.mark.parametrize("data", [b"", b"GET http://server.example/ HTTP/1.1\r\n", b"\x05", b"\x05\x01\x00\x05\x01"])
async def test_a_client_that_leaves_in_its_request_is_forgotten(world, data):
    outlet = await world.outlet("server.example")
    await exchange(outlet, data)
    assert world.records == []


NAME = b"\x03\x0eserver.example"


@pytest.mark.parametrize("address", [NAME, b"\x01\x7f\x00\x00\x01", b"\x04" + b"\0" * 10 + b"\xff\xff\x7f\x00\x00\x01"])
async def test_socks_reaches_an_allowed_host_by_name_and_by_address(world, address):
    async with serving(echo) as port:
        outlet = await world.outlet(f"server.example:{port}", f"127.0.0.1:{port}")
        answer = await exchange(outlet, b"\x05\x01\x00\x05\x01\x00" + address + port.to_bytes(2, "big") + b"hello")
    assert answer == b"\x05\x00" + b"\x05\x00\x00\x01" + bytes(6) + b"hello"


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (b"\x05\x01\x00\x05\x01\x00\x03\x0cevil.example\x01\xbb", b"\x05\x00\x05\x02\x00\x01" + bytes(6)),
        (b"\x05\x01\x00\x05\x01\x00\x01\x0a\x00\x00\x01\x01\xbb", b"\x05\x00\x05\x02\x00\x01" + bytes(6)),
        (b"\x05\x01\x00\x05\x02\x00" + NAME + b"\x01\xbb", b"\x05\x00\x05\x07\x00\x01" + bytes(6)),
        (b"\x05\x01\x00\x05\x03\x00" + NAME + b"\x01\xbb", b"\x05\x00\x05\x07\x00\x01" + bytes(6)),
        (b"\x05\x01\x00\x05\x01\x00\x09", b"\x05\x00\x05\x08\x00\x01" + bytes(6)),
        (b"\x05\x01\x00\x05\x01\x00\x03\x02\xff.\x01\xbb", b"\x05\x00\x05\x01\x00\x01" + bytes(6)),
        (b"\x05\x01\x00\x05\x01\x00" + NAME + b"\x00\x00", b"\x05\x00\x05\x01\x00\x01" + bytes(6)),
        (b"\x05\x01\x02", b"\x05\xff"),
    ],
)
async def test_socks_refuses_with_the_code_of_the_protocol(world, data, answer):
    outlet = await world.outlet("server.example")
    assert await exchange(outlet, data) == answer


async def test_a_name_in_tls_that_is_not_the_host_of_the_tunnel_has_to_be_allowed_too(world):
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("server.example", "other.example", "evil.example").configure_cert(context)
    ours = ssl.create_default_context()
    authority.configure_trust(ours)

    async def greet(_, writer):
        writer.write(b"secret")
        await writer.drain()
        writer.close()

    tls = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=context)
    port = tls.sockets[0].getsockname()[1]
    outlet = await world.outlet(f"server.example:{port}", f"other.example:{port}", f"127.0.0.1:{port}")

    async def greeting(name):
        reader, writer = await asyncio.open_connection("127.0.0.1", outlet)
        writer.write(connect_to(f"server.example:{port}"))
        await reader.readuntil(b"\r\n\r\n")
        try:
            await writer.start_tls(ours, server_hostname=name)
            return await reader.read()
        finally:
            writer.transport.abort()

    async with asyncio.timeout(30):
        assert await greeting("server.example") == b"secret"
        await world.next_record()
        assert await greeting("other.example") == b"secret"
        await world.next_record()
        with pytest.raises(OSError):
            await greeting("evil.example")
    record = await world.next_record()
    assert (record.outcome, record.sent) == (ProxyOutcome.REFUSED, 0)
    assert record.reason == f"evil.example:{port} is not on the list of allowed hosts"
    tls.close()


async def test_a_server_that_speaks_first_is_heard_before_the_client_says_anything(world):
    async def greet(_, writer):
        writer.write(b"SSH-2.0\r\n")
        await writer.drain()

    async with serving(greet) as port:
        outlet = await world.outlet(f"127.0.0.1:{port}")
        reader, writer = await asyncio.open_connection("127.0.0.1", outlet)
        writer.write(connect_to(f"127.0.0.1:{port}"))
        async with asyncio.timeout(60):
            assert await reader.readexactly(len(CONNECTED) + 9) == CONNECTED + b"SSH-2.0\r\n"
        writer.close()


async def test_a_connection_waits_for_a_decision(world):
    asked: asyncio.Queue[str] = asyncio.Queue()
    decided = asyncio.Event()

    class Person:
        async def decide(self, question):
            asked.put_nowait(str(question.remote))
            await decided.wait()
            return HostDecision(allowed=False, reason="a person has refused it")

    outlet = await world.outlet(decider=Person())
    async with asyncio.TaskGroup() as group:
        answer = group.create_task(exchange(outlet, connect_to("evil.example:443")))
        async with asyncio.timeout(60):
            assert await asked.get() == "evil.example:443"
        assert not answer.done()
        decided.set()
    assert answer.result().startswith(b"HTTP/1.1 403 zot: a person has refused it\r\n")


async def test_a_slow_reader_holds_the_sender_up(world):
    sent, total, in_flight = 0, 40_000_000, 20_000_000  # what the kernel may hold of four sockets

    async def pour(_, writer):
        nonlocal sent
        while sent < total:
            writer.write(bytes(100_000))
            await writer.drain()
            sent += 100_000
        writer.close()

    async with serving(pour) as port:
        outlet = await world.outlet(f"127.0.0.1:{port}")
        reader, writer = await asyncio.open_connection("127.0.0.1", outlet, limit=1024)
        writer.write(connect_to(f"127.0.0.1:{port}"))
        await reader.readuntil(b"\r\n\r\n")
        count = 0
        while chunk := await reader.read(2048):
            count += len(chunk)
            assert sent - count < in_flight
        assert count == total
        writer.close()


async def test_a_lost_connection_is_recorded(world):
    async def drop(reader, writer):
        await reader.readexactly(1)
        writer.transport.abort()

    async with serving(drop) as port:
        outlet = await world.outlet(f"127.0.0.1:{port}")
        await exchange(outlet, connect_to(f"127.0.0.1:{port}", b"xx"), ends=False)
    assert (await world.next_record()).outcome is ProxyOutcome.ALLOWED


async def test_more_connections_than_are_allowed_are_closed_and_the_others_go_on(world):
    async with serving(echo) as port:
        outlet = await world.outlet(f"127.0.0.1:{port}")
        held = [await asyncio.open_connection("127.0.0.1", outlet) for _ in range(MAX_CONNECTIONS)]
        held[0][1].write(connect_to(f"127.0.0.1:{port}"))
        await held[0][0].readuntil(b"\r\n\r\n")  # accepted in order: the proxy has all of them
        reader, writer = await asyncio.open_connection("127.0.0.1", outlet)
        writer.write(connect_to(f"127.0.0.1:{port}"))
        assert await rest(reader) == b""
        held[0][1].write(b"x")
        held[0][1].write_eof()
        assert await held[0][0].read() == b"x"
        for _, each in [*held, (reader, writer)]:
            each.close()


async def rest(reader):
    """What comes until the connection ends, in whatever way."""
    try:
        return await reader.read()
    except ConnectionError:
        return b""


HANDS_OVER_AND_ENDS = """
import os, socket, sys
listener = socket.create_server(("127.0.0.1", 0))
proxy = socket.socket(socket.AF_UNIX)
proxy.connect(sys.argv[1])
socket.send_fds(proxy, [b"1"], [listener.fileno()])
assert proxy.recv(1) == b"1"
print(listener.getsockname()[1], flush=True)
sys.stdin.read()
"""


async def test_the_end_of_the_command_ends_its_connections(world):
    async def silent(reader, _):
        await reader.read()

    path = world.proxy.outlet("tests", Everything()).admit()
    command = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", HANDS_OVER_AND_ENDS, path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert command.stdin is not None
    assert command.stdout is not None
    outlet = int(await command.stdout.readline())
    async with serving(silent) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", outlet)
        writer.write(connect_to(f"127.0.0.1:{port}"))
        await reader.readuntil(b"\r\n\r\n")
        command.stdin.close()
        await command.wait()
        async with asyncio.timeout(60):
            assert await rest(reader) == b""
        record = await world.next_record()
        assert (record.outcome, record.reason) == (ProxyOutcome.ALLOWED, "the command has ended")
        with pytest.raises(ConnectionError):
            await asyncio.open_connection("127.0.0.1", outlet)
        writer.close()


async def test_a_socket_is_good_for_one_command(world):
    path = world.proxy.outlet("tests", Everything()).admit()
    await handed_over(path)
    with pytest.raises(OSError):
        await handed_over(path)


async def test_a_process_that_hands_over_nothing_is_logged(world, caplog):
    path = world.proxy.outlet("tests", Everything()).admit()
    with socket.socket(socket.AF_UNIX) as proxy:
        proxy.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(proxy, path)
        await loop.sock_sendall(proxy, b"1")
        async with asyncio.timeout(60):
            assert await loop.sock_recv(proxy, 1) == b""
    assert "did not reach the proxy: it has handed over nothing" in caplog.text


async def curl(outlet, *words):
    environment = {"PATH": os.environ["PATH"]}
    process = await asyncio.create_subprocess_exec(
        *("curl", "-sS", "--max-time", "20", "--noproxy", "", *words), env=environment, stdout=-1, stderr=-1
    )
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize("way", ["http://", "socks5h://", "socks5://"])
@pytest.mark.parametrize("tunnel", [[], ["--proxytunnel"]])
async def test_curl_works_with_it(world, way, tunnel):
    needs("curl")
    async with serving(http) as port:
        outlet = await world.outlet(f"server.example:{port}", f"127.0.0.1:{port}")
        host = "127.0.0.1" if way == "socks5://" else "server.example"
        code, out, err = await curl(outlet, "--proxy", f"{way}127.0.0.1:{outlet}", *tunnel, f"http://{host}:{port}/a")
        assert (code, err) == (0, "")
        assert out.startswith("GET /a HTTP/1.1\r\n")
        refused = await curl(outlet, "--proxy", f"{way}127.0.0.1:{outlet}", "--fail", f"http://evil.example:{port}")
        assert refused[0] != 0
