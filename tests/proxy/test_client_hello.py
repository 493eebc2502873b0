import ssl
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zotd.proxy import HostError
from zotd.proxy.client_hello import MAX_HELLO, is_tls, server_name


def hello(name):
    """The first message of a real client."""
    context = ssl.create_default_context()
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def test_the_name_in_a_first_message_is_found():
    assert server_name(hello("example.org")) == "example.org"


def test_a_client_that_names_an_address_sends_no_name():
    assert server_name(hello("127.0.0.1")) == ""


def test_more_bytes_are_wanted_until_the_message_is_whole():
    whole = hello("example.org")
    assert [server_name(whole[:count]) for count in range(1, len(whole))] == [None] * (len(whole) - 1)
    assert server_name(whole + b"more") == "example.org"


def test_a_message_that_is_cut_into_records_is_read():
    whole = hello("example.org")
    parts = [whole[5:][start : start + 7] for start in range(0, len(whole) - 5, 7)]
    cut = b"".join(b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in parts)
    assert server_name(cut) == "example.org"


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03",
        b"\x16\x03\x01\x00\x04\x02\x00\x00\x00",
        b"\x16\x03\x01\x00\x01\x01\x17\x03\x01\x00\x01\x00",
        b"\x16\x03\x01\x00\x00" * (MAX_HELLO // 5 + 1),
    ],
)
def test_what_is_no_first_message_is_refused(data):
    with pytest.raises(HostError):
        server_name(data)


@given(st.binary(min_size=1))
def test_any_bytes_are_answered(data):
    with suppress(HostError):
        server_name(b"\x16\x03" + data)


@pytest.mark.parametrize(
    ("data", "expected"), [(b"\x16", True), (b"\x16\x03\x01", True), (b"SSH-2.0", False), (b"\x16\x04", False)]
)
def test_other_protocols_are_told_apart(data, expected):
    assert is_tls(data) == expected
