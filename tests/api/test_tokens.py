"""Tokens of the WebSocket door: how they are stored, and the commands about them."""

import hashlib
import json
import os
import stat

import pytest

from zotd.core.ports import StorageError
from zotd.store.tokens import MAX_TOKENS, USED_EVERY_S, TakenError, TokenStore
from zotd.wire.api import Role


class Clock:
    now = 1_800_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def tokens(tmp_path, clock):
    return TokenStore(tmp_path / "tokens.json", clock)


# --- storage ---


def test_a_token_is_stored_as_a_digest_that_only_its_user_can_read(tokens, tmp_path):
    secret, token = tokens.create("phone", Role.SUBMIT)
    path = tmp_path / "tokens.json"
    assert secret.startswith("zot_")
    assert len(secret) == len("zot_") + 43
    assert secret not in path.read_text()
    assert hashlib.sha256(secret.encode()).hexdigest() == token.digest
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert tokens.admitted(secret) == ("phone", token)


def test_every_token_is_different_and_names_are_unique(tokens):
    made = {tokens.create(f"t{number}", Role.READ)[0] for number in range(20)}
    assert len(made) == 20
    with pytest.raises(TakenError, match='a token "t3" exists already'):
        tokens.create("t3", Role.READ)


@pytest.mark.parametrize("given", ["", "zot_", "zot_" + "A" * 43, "\0", "é", "\udcff", "x" * 100_000])
def test_an_invalid_token_is_not_admitted(tokens, given):
    assert tokens.admitted(given) is None
    tokens.create("phone", Role.SUBMIT)
    assert tokens.admitted(given) is None


def test_a_token_is_valid_until_it_expires_or_is_revoked(tokens, clock):
    secret, token = tokens.create("phone", Role.SUBMIT, lifetime_s=60)
    clock.now += 59
    assert tokens.admitted(secret)
    assert tokens.stands("phone", token)
    clock.now += 1
    assert tokens.admitted(secret) is None
    assert not tokens.stands("phone", token)
    assert "phone" in tokens.list()
    other, _ = tokens.create("board", Role.READ)
    assert tokens.revoke("board")
    assert not tokens.revoke("board")
    assert tokens.admitted(other) is None


def test_a_token_created_again_under_the_same_name_is_another_token(tokens):
    _, token = tokens.create("phone", Role.SUBMIT)
    tokens.revoke("phone")
    tokens.create("phone", Role.SUBMIT)
    assert not tokens.stands("phone", token)


def test_the_last_use_is_recorded_to_the_minute(tokens, clock, tmp_path):
    tokens.create("phone", Role.READ)
    tokens.use("phone")
    first = (tmp_path / "tokens.json").stat().st_ino
    assert tokens.list()["phone"].used == clock.now
    clock.now += USED_EVERY_S - 1
    tokens.use("phone")
    assert (tmp_path / "tokens.json").stat().st_ino == first
    clock.now += 1
    tokens.use("phone")
    tokens.use("nobody")
    assert tokens.list()["phone"].used == clock.now


def test_the_number_of_tokens_is_limited(tmp_path, clock):
    path = tmp_path / "tokens.json"
    one = {"digest": "0" * 64, "role": "read", "created": 1}
    path.write_text(json.dumps({"tokens": {f"t{number}": one for number in range(MAX_TOKENS)}}))
    path.chmod(0o600)
    with pytest.raises(TakenError, match="revoke some"):
        TokenStore(path, clock).create("another", Role.READ)


GOOD = (
    b'{"tokens":{"phone":{"digest":"%s","role":"submit","created":1}}}'
    % hashlib.sha256(b"zot_good").hexdigest().encode()
)


def a_link(path):
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def a_directory(path):
    path.unlink()
    path.mkdir()


def a_pipe(path):
    path.unlink()
    os.mkfifo(path, 0o600)


OTHER_FILES = {
    "0644": lambda path: path.chmod(0o644),
    "0660": lambda path: path.chmod(0o660),
    "a link": a_link,
    "a directory": a_directory,
    "a pipe": a_pipe,
    "empty": lambda path: path.write_bytes(b""),
    "3 characters": lambda path: path.write_bytes(b"zot"),
    "a NUL": lambda path: path.write_bytes(GOOD + b"\0"),
    "cut short": lambda path: path.write_bytes(GOOD[:-1]),
    "an unknown role": lambda path: path.write_bytes(GOOD.replace(b"submit", b"root")),
    "too large": lambda path: path.write_bytes(GOOD + b" " * (2 * 1024 * 1024)),
    "another user's": lambda path: os.chown(path, 65534, 65534),
}


BAD = {
    "0644": "is open to other users (-rw-r--r--)",
    "0660": "is open to other users (-rw-rw----)",
    "a link": "is a symbolic link, which is not followed",
    "a directory": "is not a regular file",
    "a pipe": "is not a regular file",
    "empty": "is damaged",
    "3 characters": "is damaged",
    "a NUL": "is damaged",
    "cut short": "is damaged",
    "an unknown role": "is damaged",
    "too large": "is larger than any token file of zotd",
} | ({"another user's": "belongs to another user (uid 65534)"} if os.geteuid() == 0 else {})


def _unread(path):
    """The result of `lstat` without the access time, which reading the file may change."""
    found = path.lstat()
    return (found.st_mode, found.st_ino, found.st_nlink, found.st_uid, found.st_size, found.st_mtime_ns)


@pytest.mark.parametrize("how", BAD)
def test_an_unsafe_or_damaged_token_file_admits_no_client_and_is_not_changed(tokens, tmp_path, how):
    path = tmp_path / "tokens.json"
    path.write_bytes(GOOD)
    path.chmod(0o600)
    OTHER_FILES[how](path)
    before = _unread(path)
    assert tokens.admitted("zot_good") is None
    assert f"{path} {BAD[how]}" in tokens.problem()
    with pytest.raises(StorageError):
        tokens.create("another", Role.READ)
    with pytest.raises(StorageError):
        tokens.revoke("phone")
    assert _unread(path) == before


@pytest.mark.parametrize("how", [b"", b"\n", b" \r\n"])
def test_trailing_white_space_in_the_token_file_is_accepted(tokens, tmp_path, how):
    path = tmp_path / "tokens.json"
    path.write_bytes(GOOD + how)
    path.chmod(0o600)
    assert tokens.problem() == ""
    found = tokens.admitted("zot_good")
    assert found is not None
    assert found[1].ceiling is Role.SUBMIT


# --- commands ---


async def test_a_token_is_shown_once_and_listed_without_its_secret(door, session_of):
    made = await door.admin.ask(
        "token.create", name="phone", role="approve", session=session_of, expires_s=3600, sessions=[session_of]
    )
    assert (made["name"], made["role"], made["sessions"]) == ("phone", "approve", [session_of])
    (listed,) = (await door.admin.ask("token.list"))["tokens"]
    assert listed == {name: value for name, value in made.items() if name != "token"}
    assert made["token"] not in (door.place.home / "tokens.json").read_text()


@pytest.fixture
async def session_of(door):
    made = await door.admin.ask("session.create", cwd=str(door.place.cwd), provider="ollama", model="none")
    return made["session"]["id"]


async def test_only_an_admin_can_create_list_and_revoke_tokens(door):
    for role in ("read", "submit", "approve"):
        web = await door.member(await door.token(role, role), role="admin")
        assert await web.refused("token.create", name="x", role="read") == "forbidden"
        assert await web.refused("token.list") == "forbidden"
        assert await web.refused("token.revoke", name=role) == "forbidden"
    web = await door.member(await door.token("admin", "admin"), role="admin")
    assert (await web.ask("token.create", name="x", role="read"))["role"] == "read"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"name": ""}, "bad_request"),
        ({"name": "a b"}, "bad_request"),
        ({"name": "x" * 65}, "bad_request"),
        ({"name": "../../x"}, "bad_request"),
        ({"role": "root"}, "bad_request"),
        ({"session": "s_nothing"}, "not_found"),
        ({"sessions": ["s"] * 3 + [str(number) for number in range(70)]}, "bad_request"),
        ({"expires_s": 0}, "bad_request"),
        ({"expires_s": -1}, "bad_request"),
        ({"expires_s": 1e12}, "bad_request"),
        ({"name": "taken"}, "conflict"),
    ],
)
async def test_a_token_with_invalid_properties_is_refused(door, fields, code):
    await door.token("taken")
    assert await door.admin.refused("token.create", **{"name": "new", "role": "read", **fields}) == code


async def test_revoking_an_unknown_token_is_an_error(door):
    assert await door.admin.refused("token.revoke", name="nobody") == "not_found"


async def test_an_unusable_token_file_is_not_overwritten(door):
    await door.token("phone")
    path = door.place.home / "tokens.json"
    path.write_bytes(b"{")
    assert await door.admin.refused("token.create", name="another", role="read") == "storage_blocked"
    assert path.read_bytes() == b"{"
