"""Tokens at the WebSocket door: who comes in with one, how far, and for how long."""

import asyncio

import pytest

from tests.api.web import CLOSE, visitor
from zotd.api.websocket.throttle import BURST

SESSION = {"provider": "ollama", "model": "none"}


async def new_session(client, door, **fields):
    return (await client.ask("session.create", cwd=str(door.place.cwd), **SESSION, **fields))["session"]["id"]


BAD_HELLOS: dict[str, dict[str, object]] = {
    "no token": {},
    "an empty token": {"token": ""},
    "a wrong token": {"token": "zot_" + "x" * 43},
    "a token of another length": {"token": "zot_x"},
    "a very long token": {"token": "zot_" + "x" * 60_000},
    "a token that is no text": {"token": 17},
}


async def test_without_a_token_that_counts_a_connection_is_closed_without_a_word(door, token):
    for name, hello in BAD_HELLOS.items():
        web = await door.stranger()
        web.send("hello", **hello)
        assert await web.raw() == (CLOSE, (4401).to_bytes(2, "big")), name


async def test_a_token_that_is_almost_right_is_wrong(door, token):
    for wrong in (token[:-1], token + "\n", token + "\0", token.upper(), token.removeprefix("zot_")):
        web = await door.stranger()
        web.send("hello", token=wrong)
        assert await web.end() == 4401


async def test_a_client_gets_what_its_token_gives_whatever_it_says_of_itself(door, caplog):
    web = await door.member(
        await door.token("reader", "read"), role="admin", client={"name": "zotctl", "kind": "zotctl"}
    )
    assert await web.refused("daemon.shutdown") == "forbidden"
    assert await web.refused("session.create", cwd="/") == "forbidden"
    assert (await web.ask("hello", role="admin"))["role"] == "read"
    assert "token:reader) asked for the role admin" in caplog.text
    assert "is admin" not in [record.getMessage() for record in caplog.records if "token:reader" in record.getMessage()]


async def test_a_client_may_ask_for_less_than_its_token_gives(door, token):
    web = await door.member(token, role="read")
    assert await web.refused("daemon.shutdown") == "forbidden"
    assert await (await door.member(token)).refused("daemon.shutdown") == "forbidden"  # admin has to be asked for


async def test_a_revoked_token_ends_its_connections_at_once_and_no_others(door, token):
    cut, kept = await door.member(await door.token("phone", "submit")), await door.member(token)
    session = await new_session(cut, door)
    await cut.ask("attach", session=session)
    await door.admin.ask("token.revoke", name="phone")
    assert (await cut.until("evicted"))[-1]["reason"] == 'the token "phone" holds no longer'
    assert await cut.end() == 4401
    assert await kept.ask("ping") == {"pong": True}


async def test_what_was_sent_after_the_revocation_is_not_done(door):
    token = await door.token("phone", "submit")
    web = await door.member(token)
    session = await new_session(web, door)
    asked = door.admin.send("token.revoke", name="phone")
    await door.admin.answer_to(asked)
    web.send("session.rename", session=session, name="too late")
    await web.end()
    assert (await door.admin.ask("session.get", session=session))["name"] != "too late"


async def test_a_token_that_revokes_itself_is_told_so_first(door):
    web = await door.member(await door.token("own"), role="admin")
    assert await web.ask("token.revoke", name="own") == {}
    assert await web.end() == 4401


@pytest.mark.parametrize("damage", ["open to others", "cut short", "replaced by a link", "empty"])
async def test_a_file_of_tokens_that_is_not_safe_admits_nobody_and_status_says_why(door, token, damage):
    path = door.place.home / "tokens.json"
    if damage == "open to others":
        path.chmod(0o644)
    elif damage == "replaced by a link":
        path.rename(path.with_name("elsewhere"))
        path.symlink_to("elsewhere")
    else:
        path.write_bytes(b"" if damage == "empty" else path.read_bytes()[:-20])
    web = await door.stranger()
    web.send("hello", token=token)
    assert await web.end() == 4401
    (warning,) = (await door.admin.ask("daemon.status"))["warnings"]
    assert warning.startswith(f"no token is accepted: {path} ")


async def test_a_thousand_bad_tokens_from_this_machine_are_slowed_down_and_a_good_one_comes_in(door, token, caplog):
    heard, refused = 0, 0
    for number in range(1000):
        async with visitor(door.url) as web:
            if await web.upgrade() == 429:
                refused += 1
                continue
            web.send("hello", token=f"zot_{number}")
            assert await web.end() == 4401
            heard += 1
    seconds = 60  # that it may take on the slowest machine
    assert heard <= 10 + seconds
    assert refused >= 1000 - heard
    assert caplog.text.count("authentication failed for 127.0.0.1") == 1000
    elsewhere = await door.visitor(local=("127.0.0.2", 0))
    assert await elsewhere.upgrade() == 101
    await elsewhere.hello(token)
    async with asyncio.timeout(20):
        while True:
            web = await door.visitor()
            if await web.upgrade() == 101:
                break
    assert (await web.hello(token))["role"] == "approve"


async def test_who_was_let_in_before_others_failed_at_the_same_address_is_not_refused_for_it(door, token):
    early = await door.stranger()
    for _ in range(BURST):
        web = await door.stranger()
        web.send("hello", token="zot_wrong")
        assert await web.end() == 4401
    assert (await early.hello(token))["role"] == "approve"


# --- a token for some sessions ---


async def test_a_token_for_one_session_sees_and_does_nothing_else(door):
    own, other = await new_session(door.admin, door, name="own"), await new_session(door.admin, door, name="other")
    web = await door.member(await door.token("guest", "admin", session=own), role="admin")
    assert [one["id"] for one in (await web.ask("session.list"))["sessions"]] == [own]
    await web.ask("attach", session=own)
    await web.ask("session.rename", session=own, name="mine")
    for command, fields in {
        "attach": {"session": other},
        "session.get": {"session": "other"},
        "prompt": {"session": other, "message": "hi"},
        "session.create": {"cwd": "/"},
        "session.fork": {"session": own},
        "session.search": {"query": "x"},
        "prompt.history": {},
        "usage.report": {},
        "approval.list": {},
        "ext.list": {"session": own, "cwd": "/"},
        "approve": {"session": own, "approval": "a", "args_digest": "d", "decision": "allow", "scope": "always"},
        "token.create": {"session": own, "name": "mine", "role": "admin"},
        "token.list": {},
        "trust.list": {},
        "daemon.shutdown": {},
    }.items():
        assert await web.refused(command, **fields) == "forbidden", command
    assert (await web.ask("daemon.status"))["warnings"] == []


async def test_a_token_for_one_session_hears_of_no_other(door):
    own, other = await new_session(door.admin, door), await new_session(door.admin, door)
    web = await door.member(await door.token("guest", "read", session=own))
    await web.ask("subscribe", topics=["sessions", "extensions", "trust"])
    for session in (other, own):
        await door.admin.ask("session.rename", session=session, name="renamed")
    assert (await web.event())["session"] == own


async def test_a_token_with_a_low_role_for_one_session_does_not_widen_its_mode(door):
    own = await new_session(door.admin, door, mode="ask")
    web = await door.member(await door.token("guest", "submit", session=own))
    assert await web.refused("session.configure", session=own, mode="yolo") == "forbidden"
