"""Tokens at the WebSocket door: who comes in with one, how far, and for how long."""

import asyncio
from contextlib import suppress
from itertools import count

import pytest

from tests.api.web import CLOSE, PING, PONG, ClosedError, masked, stranger, visitor
from zotd.api.websocket.throttle import BURST
from zotd.api.websocket.visitor import MAX_VISITORS

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
    assert (await cut.until("evicted"))[-1]["reason"] == 'the token "phone" is no longer valid'
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


async def guess(door, number):
    """Show a wrong token, and wait for what the door says."""
    async with visitor(door.url) as web:
        assert await web.upgrade() == 101
        web.send("hello", token=f"zot_{number}")
        return await web.end()


async def keep_guessing(door, numbers):
    for number in numbers:
        with suppress(OSError):  # the door hangs up on those that are too many
            await guess(door, number)


async def keep_guessing_without_waiting(door, numbers):
    for number in numbers:
        with suppress(OSError):
            async with visitor(door.url) as web:
                if await web.upgrade() == 101:
                    web.send("hello", token=f"zot_{number}")
                    await web.writer.drain()


async def test_a_good_token_comes_in_each_time_while_others_at_its_address_guess_without_a_pause(door, token):
    numbers, logins = count(), 0
    guessers = [keep_guessing] * 40 + [keep_guessing_without_waiting] * 8
    async with asyncio.TaskGroup() as group:
        hammering = [group.create_task(guesser(door, numbers)) for guesser in guessers]
        while logins < 12 or next(numbers) < 1000:
            async with stranger(door.url) as web:
                assert (await web.hello(token))["role"] == "approve"
                assert await web.ask("ping") == {"pong": True}
                logins += 1
        for task in hammering:
            task.cancel()


async def test_when_ten_wrong_tokens_have_come_from_an_address_the_next_wait_to_be_refused(door, token, caplog):
    for number in range(BURST):
        assert await guess(door, number) == 4401
    waiting = [await door.stranger() for _ in range(4)]
    for web in waiting:
        web.send("hello", token="zot_wrong")
        web.write(masked(PING, b"still here?"))
        assert await web.raw() == (PONG, b"still here?")
        web.send("hello", token=token)  # nobody has a second try
    for web in waiting:
        assert await web.raw() == (CLOSE, (4401).to_bytes(2, "big"))
    assert caplog.text.count("authentication failed for 127.0.0.1") == BURST + len(waiting)


async def test_who_waits_to_be_refused_takes_nobodys_place(door, token):
    for number in range(BURST):
        await guess(door, number)
    early = await door.stranger()
    for _ in range(MAX_VISITORS + BURST):
        web = await door.stranger()
        web.send("hello", token="zot_wrong")
        web.write(masked(PING))
        with suppress(ClosedError):
            await web.raw()  # it was heard, or had to leave already
    assert (await early.hello(token))["role"] == "approve"


async def test_metrics_are_there_for_a_good_token_whoever_failed_before(door, token):
    codes = []
    for _ in range(BURST + 2):
        code, headers, _ = await (await door.visitor()).request("/metrics", Authorization="Bearer zot_wrong")
        codes.append(code)
    assert codes == [401] * BURST + [429] * 2
    assert headers["retry-after"] == "1"
    assert (await (await door.visitor()).request("/metrics", Authorization=f"Bearer {token}"))[0] == 200


async def test_who_was_let_in_before_others_failed_at_the_same_address_is_not_refused_for_it(door, token):
    early = await door.stranger()
    for number in range(BURST):
        assert await guess(door, number) == 4401
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
