"""Malformed and excessive WebSocket framing, before and after hello: it must not cost other clients anything."""

import asyncio
import os
from contextlib import AsyncExitStack
from itertools import pairwise

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.api.web import BINARY, CLOSE, PING, PONG, TEXT, ClosedError, masked, stranger
from zotd.api.websocket import carrier, visitor
from zotd.api.websocket.frames import MAX_FRAGMENTS, Frames, Op, frame
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.wire_client import WireClient

MIB = 1024 * 1024

SENT_MIB = 128
"""Bytes sent of an announced gigabyte; if the daemon kept them, it would be visible by then."""


# --- decoder ---


def heard(data, cuts=()):
    """Lines, the last ping and the close code, for bytes divided in any way."""
    frames = Frames()
    lines, pings, close = bytearray(), [], None
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in pairwise(edges):
        if frames.is_over:
            break
        found = frames.feed(data[start:end])
        lines += found.lines
        pings += [] if found.ping is None else [found.ping]
        close = found.close if found.close is not None else close
    return bytes(lines), pings[-1:], close


MESSAGES = st.lists(
    st.one_of(
        st.binary(max_size=300).map(lambda text: [masked(TEXT, text, mask=os.urandom(4))]),
        st.lists(st.binary(max_size=40), min_size=2, max_size=4).map(
            lambda parts: [
                masked(TEXT if number == 0 else 0, part, fin=number == len(parts) - 1, mask=b"\x01\x80\xff\x00")
                for number, part in enumerate(parts)
            ]
        ),
        st.binary(max_size=125).map(lambda text: [masked(PING, text)]),
    ),
    max_size=6,
)


@given(MESSAGES, st.lists(st.integers(0, 5000), max_size=8))
def test_messages_do_not_depend_on_how_bytes_are_divided(messages, cuts):
    data = b"".join(piece for message in messages for piece in message)
    assert heard(data, cuts) == heard(data)


@given(st.lists(st.binary(max_size=200_000), max_size=3), st.binary(min_size=4, max_size=4))
def test_masked_payload_is_restored_without_line_breaks(texts, mask):
    data = b"".join(masked(TEXT, text, mask=mask) for text in texts)
    assert heard(data)[0] == b"".join(text.replace(b"\n", b"\r") + b"\n" for text in texts)


@given(st.binary(max_size=2000), st.lists(st.integers(0, 2000), max_size=5))
def test_any_bytes_are_handled_and_not_kept(data, cuts):
    frames = Frames()
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(data)], strict=True):
        if not frames.is_over:
            frames.feed(data[start:end])
    assert len(frames._held) < 14 + 126


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_sent_frames_use_the_shortest_length_encoding(size):
    head = {0: 2, 125: 2, 126: 4, 65_535: 4, 65_536: 10}[size]
    assert len(frame(Op.TEXT, b"x" * size)) == head + size


BROKEN = {
    "not masked": (b"\x81\x04ping", 1002),
    "an extension's bit": (masked(TEXT, b"{}", rsv=4), 1002),
    "a frame of an unknown kind": (masked(3, b""), 1002),
    "a continuation of nothing": (masked(0, b"x"), 1002),
    "a message within a message": (masked(TEXT, b"{", fin=False) + masked(TEXT, b"}"), 1002),
    "a ping in pieces": (masked(PING, b"x", fin=False), 1002),
    "a ping that is too long": (masked(PING, b"x" * 126), 1002),
    "a length beyond all": (masked(TEXT, b"", size=1 << 63), 1002),
    "binary": (masked(BINARY, b"{}"), 1003),
    "a close without a code": (masked(CLOSE), 1000),
    "a close with a code": (masked(CLOSE, b"\x03\xe9bye"), 1001),
    "a close with a code of its own": (masked(CLOSE, b"\x0f\xa0"), 4000),
    "a close with half a code": (masked(CLOSE, b"\x03"), 1002),
    "a close with a reserved code": (masked(CLOSE, b"\x03\xed"), 1002),
    "a close with a code that does not exist": (masked(CLOSE, b"\xff\xff"), 1002),
}


@pytest.mark.parametrize("is_member", [False, True])
async def test_a_malformed_frame_closes_only_its_connection_with_the_right_code(door, token, is_member):
    other = await door.member(token)
    for name, (data, code) in BROKEN.items():
        web = await (door.member(token) if is_member else door.stranger())
        web.write(data)
        assert await web.end() == code, name
        assert await other.ask("ping") == {"pong": True}


# --- excess ---


async def test_a_compressed_message_is_refused_without_decompressing_it(door, token):
    web = await door.stranger()
    web.write(masked(TEXT, b"\x00" * 60, rsv=4))
    assert await web.end() == 1002


async def test_a_message_in_too_many_frames_is_refused(door, token):
    web = await door.member(token)
    piece = masked(0, b" ", fin=False)
    web.write(masked(TEXT, b" ", fin=False) + piece * 100_000)
    assert await web.end() == 1008


async def test_a_message_in_the_maximum_number_of_frames_is_accepted(door, token):
    web = await door.member(token)
    pieces = [masked(0, b" ", fin=False)] * (MAX_FRAGMENTS - 2)
    web.write(b"".join([masked(TEXT, b'{"id":77,"type":', fin=False), *pieces, masked(0, b'"ping"}')]))
    assert (await web.answer_to(77))["data"] == {"pong": True}


async def test_a_flood_of_empty_messages_is_refused_and_of_empty_frames_is_not(door, token):
    web = await door.member(token)
    empty = masked(TEXT, b"", fin=False) + masked(0, b"")
    web.write(empty * (2 * carrier.MAX_CONTROLS) + masked(TEXT, b""))
    assert await web.ask("ping") == {"pong": True}
    web.write(masked(TEXT, b"") * (carrier.MAX_CONTROLS + 1))
    assert await web.end() == 1008


@pytest.mark.parametrize("is_member", [False, True])
async def test_a_flood_of_pings_is_refused_and_a_few_are_answered(door, token, is_member):
    web = await (door.member(token) if is_member else door.stranger())
    web.write(masked(PING, b"are you there"))
    assert await web.raw() == (PONG, b"are you there")
    web.write(masked(PING, b"x" * 125) * (carrier.MAX_CONTROLS + 1))
    assert await web.end() == 1008


async def test_malformed_messages_are_answered_and_the_connection_continues(door, token):
    web = await door.member(token)
    for bad in (
        b'{"type":"ping","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"type":"ping","id":NaN}',
        b'{"type":"ping","id":Infinity}',
        b'{"type":"ping","id":-Infinity}',
        b'{"type":"attach","limit":1e999}',
        b'{"type":"ping","id":' + b"9" * 5000 + b"}",
        b'{"type":"ping","id":9007199254740993}',
        b'{"type":"prompt","session":"s","message":"\\ud800"}',
        b'{"type":"ping","x":"\xff"}',
        b"\xef\xbb\xbf{}",
        b"\xff\xfe{\x00}\x00",
        b"\x00",
        b"[]",
        b'"ping"',
        b"17",
        b"{",
        b'{"type":17}',
    ):
        web.text(bad)
        answer = await web.frame()
        assert (answer["success"], answer["code"]) == (False, "bad_request"), bad[:40]
    assert await web.ask("ping") == {"pong": True}


async def test_line_breaks_within_a_message_do_not_split_it(door, token):
    web = await door.member(token)
    web.text('{\r\n"type":\n"nothing\u2028\u2029\x85\u000b",\n"id":5}\n\n'.replace("\x0b", "\\u000b").encode())
    answer = await web.frame()
    assert (answer["id"], answer["error"]) == (5, "unknown command")
    for empty in (b"", b"\n", b"\r\n"):
        web.text(empty)
    assert await web.ask("ping") == {"pong": True}


async def test_duplicate_json_keys_never_exceed_the_rights_of_the_token(door):
    web = await door.stranger()
    token = await door.token("reader", "read")
    web.text(f'{{"id":1,"type":"hello","token":"{token}","role":"read","role":"admin"}}'.encode())
    assert (await web.answer_to(1))["data"]["role"] == "read"
    assert await web.refused("daemon.shutdown") == "forbidden"


async def test_a_message_over_16_mib_is_skipped_as_it_arrives(door, token):
    web = await door.member(token)
    web.write(masked(TEXT, b"", size=17 * MIB)[:14])
    for _ in range(17):
        web.write(b"x" * MIB)
        await web.writer.drain()
    assert (await web.frame())["code"] == "too_large"
    assert await web.ask("ping") == {"pong": True}


async def test_a_hello_longer_than_64_kib_is_refused_early(door, token):
    web = await door.stranger()
    web.write(masked(TEXT, b'{"type":"hello","token":"' + b"x" * 65_536, size=10 * MIB))
    assert await web.end() == 4401


async def test_a_message_of_a_gigabyte_is_refused_early_without_using_memory(tmp_path):
    with DaemonProcess(tmp_path, {"ZOT_WEBSOCKET_LISTEN": "127.0.0.1:0"}) as daemon:
        async with AsyncExitStack() as stack:
            admin = await stack.enter_async_context(WireClient.connect(daemon.place.socket))
            await admin.ask("hello", role="admin")
            url = (await admin.ask("daemon.status"))["websocket"]
            token = (await admin.ask("token.create", name="t", role="read"))["token"]
            web = await stack.enter_async_context(stranger(url))
            await web.hello(token)
            process = psutil.Process(daemon.pid)
            web.write(masked(TEXT, b"", size=1 << 30)[:14])
            block = b"x" * MIB

            async def send(count):
                for _ in range(count):
                    web.write(block)
                    await web.writer.drain()

            await send(32)
            await admin.ask("ping")
            before = process.memory_info().rss
            await send(SENT_MIB - 32)
            assert (await web.frame())["code"] == "too_large"
            await admin.ask("ping")
            assert process.memory_info().rss - before <= 8 * MIB


async def test_three_hundred_silent_visitors_keep_no_client_out(door, token):
    silent = [await door.visitor() for _ in range(150)]
    silent += [await door.stranger() for _ in range(150)]
    for web in silent[-5:]:
        web.write(b"\x81")  # the first byte of a frame, and nothing more
    assert await (await door.member(token)).ask("ping") == {"pong": True}
    port = int(door.url.split(":")[2].split("/")[0])
    held = [one for one in psutil.Process().net_connections("tcp") if one.laddr and one.laddr.port == port]
    assert len(held) <= visitor.MAX_VISITORS + 3  # and the listener, the member, and one that is being closed
    for web in silent[: 300 - visitor.MAX_VISITORS]:  # the oldest ones, which the daemon has disconnected
        async with asyncio.timeout(60):
            while await web.reader.read(100):
                pass


async def test_a_visitor_without_a_token_is_disconnected_after_ten_seconds(door, token):
    webs = [await door.visitor(), await door.stranger(), await door.stranger()]
    webs[2].write(masked(TEXT, b"{", fin=False))
    assert await webs[1].end() == 4401
    assert await webs[2].end() == 4401
    assert await webs[0].reader.read(1) == b""


async def test_messages_sent_with_the_hello_are_answered_in_order(door, token):
    web = await door.stranger()
    first = web.send("hello", token=token)
    second = web.send("ping")
    assert [(await web.frame())["id"], (await web.frame())["id"]] == [first, second]


async def test_a_message_before_hello_closes_the_connection(door, token):
    web = await door.stranger()
    web.send("ping")
    web.send("hello", token=token)
    with pytest.raises(ClosedError) as closed:
        await web.frame()
    assert closed.value.code == 4401


async def test_an_oversized_hello_is_refused_even_with_a_valid_token(door, token):
    web = await door.stranger()
    web.send("hello", token=token, padding="x" * carrier.HELLO_BYTES)
    assert await web.end() == 4401
