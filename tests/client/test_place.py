"""Location of the daemon: flags, variables, paths and token files."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from zotd.client import origin, pins, place, token_file
from zotd.client.environment import without_flags
from zotd.client.errors import ClientError

TOKEN = "zot_" + "a" * 43
HOST = "wss://box.example:7777"


def refused(function, *arguments):
    with pytest.raises(ClientError) as caught:
        function(*arguments)
    return str(caught.value)


@pytest.mark.parametrize(
    ("args", "rest", "variables"),
    [
        (["--host", HOST, "ping"], ["ping"], {"ZOT_HOST": HOST}),
        (["sessions", f"--host={HOST}", "--json"], ["sessions", "--json"], {"ZOT_HOST": HOST}),
        (["--token-file", "t", "-p", "hi"], ["-p", "hi"], {"ZOT_TOKEN_FILE": "t"}),
        (["--ca-file=c"], [], {"ZOT_CA_FILE": "c"}),
        (["--host="], [], {"ZOT_HOST": ""}),
        (["-p", "--", "--host", HOST], ["-p", "--", "--host", HOST], {}),
        (["ping", "--host"], ["ping", "--host"], {}),
        (["--hosts", HOST], ["--hosts", HOST], {}),
    ],
)
def test_location_flags_are_accepted_anywhere_before_the_double_dash(args, rest, variables):
    assert without_flags(args) == (rest, variables)


def test_without_a_host_the_local_socket_is_used(tmp_path):
    env = {"ZOTD_SOCKET": str(tmp_path / "s"), "ZOT_HOST": "", "HOME": "/home/ann"}
    where = place.of(env)
    assert (where.name, where.is_remote, where.variables) == (str(tmp_path / "s"), False, env)
    assert place.of({"ZOT_HOST": HOST}, path="/run/s").name == "/run/s"


def test_a_remote_daemon_gets_neither_environment_nor_local_paths():
    where = place.of({"ZOT_HOST": HOST, "ANTHROPIC_API_KEY": "sk", "ZOT_TRUST": "1"})
    assert (where.name, where.variables, where.was_killed()) == (HOST, None, False)
    assert where.real_path("/srv/../srv/app") == "/srv/../srv/app"
    assert refused(where.real_path, ".") == f'"." is not an absolute path, which {HOST} requires'
    assert (where.directory(None), where.directory("/nonexistent")) == (None, "/nonexistent")


def test_a_local_directory_must_exist(tmp_path):
    where = place.of({"ZOTD_SOCKET": "/run/s"})
    assert (
        refused(where.directory, str(tmp_path / "none"))
        == f"there is no directory {tmp_path}/none; create it, or give another with --cwd"
    )
    assert where.directory(None) == str(Path.cwd())


@pytest.mark.parametrize(
    ("url", "name", "full"),
    [
        ("wss://Box.Example.:7777", "box.example:7777", "wss://box.example:7777/v1"),
        ("wss://box.example", "box.example:443", "wss://box.example:443/v1"),
        ("WSS://box.example/v1", "box.example:443", "wss://box.example:443/v1"),
        ("wss://[2001:DB8::1]:7/", "[2001:db8::1]:7", "wss://[2001:db8::1]:7/v1"),
        ("wss://192.0.2.7", "192.0.2.7:443", "wss://192.0.2.7:443/v1"),
        ("ws://localhost:7777", "localhost:7777", "ws://localhost:7777/v1"),
        ("ws://127.3.2.1:7777", "127.3.2.1:7777", "ws://127.3.2.1:7777/v1"),
        ("ws://[::1]", "[::1]:80", "ws://[::1]:80/v1"),
    ],
)
def test_a_url_is_normalised_to_an_origin(url, name, full):
    assert (origin.parsed(url).name, origin.parsed(url).url) == (name, full)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("box.example:7777", "must be a URL"),
        ("https://box.example", "must be a URL"),
        ("wss://", "must be a URL"),
        ("wss://box.example\n.evil.example", "must be a URL"),
        ("wss://box.example\\evil.example", "must be a URL"),
        ("wss://böx.example", "must be a URL"),
        ("wss://:secret@böx.example", "a user name or a password"),
        ("https://:secret@box.example", "a user name or a password"),
        ("wss://:secret@box.example:99999", "a user name or a password"),
        ("wss://box.example:99999?token=secret", "a query or a fragment"),
        ("wss://box.example:99999", "Port out of range"),
        ("wss://box.example:0", "does not name a valid host"),
        ("wss://[::1", "Invalid IPv6"),
        ("wss://[fe80::1%25eth0]:7", "does not name a valid host"),
        ("wss://2130706433", "does not name a valid host"),
        ("wss://" + "a" * 64, "does not name a valid host"),
        ("wss://box.example@evil.example", "a user name or a password"),
        ("wss://:secret@box.example", "a user name or a password"),
        ("wss://box.example?token=x", "a query or a fragment"),
        ("wss://box.example/v1#", "a query or a fragment"),
        ("wss://box.example/v2", "must end with the port"),
        ("ws://box.example", "in the clear"),
        ("ws://192.0.2.7", "in the clear"),
        ("ws://127.0.0.1.evil.example", "in the clear"),
        ("ws://localhost.evil.example", "in the clear"),
        ("ws://[::ffff:192.0.2.7]", "in the clear"),
    ],
)
def test_a_url_with_more_or_less_than_a_host_is_refused(url, why):
    sentence = refused(origin.parsed, url)
    assert why in sentence
    assert "\n" not in sentence
    assert "secret" not in sentence


@pytest.fixture
def file(tmp_path):
    """`file(content, mode)`: path of a token file."""

    def file(content=TOKEN, mode=0o600):
        path = tmp_path / "token"
        path.write_bytes(content.encode())
        path.chmod(mode)
        return str(path)

    return file


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_token_is_read_without_its_newline(file, end):
    assert token_file.read(file(TOKEN + end, 0o400)) == TOKEN


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [
        ("", 0o600, "is empty"),
        ("\n", 0o600, "is empty"),
        ("abc", 0o600, "too short for a token"),
        (TOKEN[:-1], 0o600, "too short for a token"),
        (TOKEN[:9] + "\0" + TOKEN[9:], 0o600, "contains a NUL byte"),
        (f"{TOKEN}\n{TOKEN}", 0o600, "must contain only a token"),
        (f"{TOKEN}\n\n", 0o600, "must contain only a token"),
        (TOKEN * 100, 0o600, "must contain only a token"),
        (TOKEN, 0o640, "is open to other users"),
        (TOKEN, 0o604, "is open to other users"),
        (TOKEN, 0o620, "is open to other users"),
    ],
)
def test_an_invalid_or_open_token_file_is_refused(file, content, mode, why):
    path = file(content, mode)
    sentence = refused(token_file.read, path)
    assert (why in sentence, path in sentence, TOKEN[:9] in sentence) == (True, True, False)


def test_a_token_file_must_be_a_regular_file(file, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(file())
    os.mkfifo(tmp_path / "fifo", 0o600)
    assert "is a symbolic link" in refused(token_file.read, str(link))
    assert "is not a regular file" in refused(token_file.read, str(tmp_path / "fifo"))
    assert "is not a regular file" in refused(token_file.read, str(tmp_path))
    assert refused(token_file.read, str(tmp_path / "none")).endswith("No such file or directory")
    assert "--token-file" in refused(token_file.read, "")


def test_a_token_file_of_another_user_is_refused(file):
    path = "/etc/passwd"  # owned by root; root itself could change the owner of a file
    if os.geteuid() == 0:
        path = file()
        os.chown(path, 12345, -1)
    assert refused(token_file.read, path).endswith("not to you")


def test_a_token_is_pinned_to_the_first_host(tmp_path):
    home = str(tmp_path / "home")
    pins.check(TOKEN, "one:1", home)  # records no pin
    pins.record(TOKEN, "one:1", home)
    pins.record(TOKEN[::-1], "two:2", home)
    pins.record(TOKEN, "one:1", home)
    sentence = "the token belongs to one:1 and was not sent to two:2"
    for function in (pins.check, pins.record):
        assert refused(function, TOKEN, "two:2", home).startswith(sentence)


def test_the_pin_file_is_private_and_contains_no_token(tmp_path):
    pins.record(TOKEN, "one:1", str(tmp_path))
    path = tmp_path / "hosts.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert TOKEN not in path.read_text()
    assert list(json.loads(path.read_text())["tokens"].values()) == ["one:1"]


@pytest.mark.parametrize(
    "content", ["", "[]", '{"tokens": 1}', '{"tokens": {"a": ["b"]}}', '{"tokens": {"a": null}}', "{" * 100_000]
)
def test_no_token_is_sent_if_the_pin_file_is_damaged(tmp_path, content):
    (tmp_path / "hosts.json").write_text(content)
    assert "is damaged" in refused(pins.check, TOKEN, "one:1", str(tmp_path))
    assert "is damaged" in refused(pins.record, TOKEN, "one:1", str(tmp_path))


def test_concurrent_pins_to_two_hosts_let_only_one_succeed(tmp_path):
    def record(name):
        try:
            pins.record(TOKEN, name, str(tmp_path))
        except ClientError:
            return None
        return name

    with ThreadPoolExecutor(20) as pool:
        allowed = set(pool.map(record, [f"host:{number % 2}" for number in range(20)]))
    assert len(allowed - {None}) == 1
    assert set(json.loads((tmp_path / "hosts.json").read_text())["tokens"].values()) == allowed - {None}


def test_a_pin_file_that_others_can_write_is_refused(tmp_path):
    path = tmp_path / "hosts.json"
    path.write_text('{"tokens": {}}')
    path.chmod(0o666)
    assert "other users can write it" in refused(pins.check, TOKEN, "one:1", str(tmp_path))
