import pytest

from zotd.proxy import HostError
from zotd.proxy.hosts import HostPort, normal_host, parse_authority


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("example.org", "example.org"),
        ("Example.ORG.", "example.org"),
        ("localhost", "localhost"),
        ("_dmarc.a-b.example", "_dmarc.a-b.example"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("ｅｘａｍｐｌｅ.org", "example.org"),
        ("example。org", "example.org"),
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("0X7F.1", "127.0.0.1"),
        ("0177.0.0.01", "127.0.0.1"),
        ("１２７.0.0.1", "127.0.0.1"),
        ("0", "0.0.0.0"),
        ("[::1]", "::1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("::FFFF:127.0.0.1", "127.0.0.1"),
        ("[::ffff:7f00:1]", "127.0.0.1"),
        ("[2001:DB8::0:1]", "2001:db8::1"),
    ],
)
def test_every_spelling_of_a_host_becomes_one(text, normal):
    assert normal_host(text) == normal


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "example..org",
        ".example.org",
        "-a.example",
        "a b",
        "a\tb",
        "a\0b",
        "a\nb",
        "a/b",
        "a@b",
        "a%2eb",
        "a\\b",
        "*.example.org",
        "straße.example",
        "a\u200db.example",
        "\ufffd",
        "x" * 64,
        "x." * 127 + "x",
        "1.2.3.4.5",
        "256.0.0.1",
        "127.0.0.1 x",
        "08.0.0.1",
        "example.0x7f",
        "a.1",
        "[::1",
        "[example.org]",
        "fe80::1%eth0",
        "::1::",
    ],
)
def test_what_is_neither_a_name_nor_an_address_is_refused(text):
    with pytest.raises(HostError):
        normal_host(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("example.org:443", HostPort("example.org", 443)),
        ("[::1]:80", HostPort("::1", 80)),
        ("0x7f.1:1", HostPort("127.0.0.1", 1)),
    ],
)
def test_a_host_and_its_port_are_told_apart(text, expected):
    assert parse_authority(text) == expected
    assert parse_authority(str(expected)) == expected


def test_a_port_that_is_missing_is_the_default_if_there_is_one():
    assert parse_authority("[::1]", 80) == HostPort("::1", 80)
    with pytest.raises(HostError, match="no port"):
        parse_authority("example.org")


@pytest.mark.parametrize(
    "text", ["a:", "a:0", "a:65536", "a:+1", "a:1e3", "a:٤", "::1:80", "user@a:80", ":80", "a:99999999"]
)
def test_a_malformed_port_or_host_is_refused(text):
    with pytest.raises(HostError):
        parse_authority(text)
