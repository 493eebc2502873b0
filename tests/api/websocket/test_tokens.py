"""Authentication at the WebSocket door: valid tokens, their rights, and their lifetime."""

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


async def test_a_connection_without_a_valid_token_is_closed_without_a_message(door, token):
    for name, hello in BAD_HELLOS.items():
        web = await door.stranger()
        web.send("hello", **hello)
        assert await web.raw() == (CLOSE, (4401).to_bytes(2, "big")), name


async def test_an_almost_correct_token_is_refused(door, token):
    for wrong in (token[:-1], token + "\n", token + "\0", token.upper(), token.removeprefix("zot_")):
        web = await door.stranger()
        web.send("hello", token=wrong)
        assert await web.end() == 4401


async def test_the_role_of_a_client_is_limited_by_its_token(door, caplog):
    web = await door.member(
        await door.token("reader", "read"), role="admin", client={"name": "zotctl", "kind": "zotctl"}
    )
    assert await web.refused("daemon.shutdown") == "forbidden"
    assert await web.refused("session.create", cwd="/") == "forbidden"
    assert (await web.ask("hello", role="admin"))["role"] == "read"
    assert "token:reader) asked for the role admin" in caplog.text
    assert "is admin" not in [record.getMessage() for record in caplog.records if "token:reader" in record.getMessage()]


async def test_a_client_may_request_a_lower_role(door, token):
    web = await door.member(token, role="read")
    assert await web.refused("daemon.shutdown") == "forbidden"
    assert await (await door.member(token)).refused("daemon.shutdown") == "forbidden"  # admin has to be requested


async def test_revoking_a_token_closes_only_its_connections_at_once(door, token):
    cut, kept = await door.member(await door.token("phone", "submit")), await door.member(token)
    session = await new_session(cut, door)
    await cut.ask("attach", session=session)
    await door.admin.ask("token.revoke", name="phone")
    assert (await cut.until("evicted"))[-1]["reason"] == 'the token "phone" is no longer valid'
    assert await cut.end() == 4401
    assert await kept.ask("ping") == {"pong": True}


async def test_commands_sent_after_the_revocation_are_not_executed(door):
    token = await door.token("phone", "submit")
    web = await door.member(token)
    session = await new_session(web, door)
    asked = door.admin.send("token.revoke", name="phone")
    await door.admin.answer_to(asked)
    web.send("session.rename", session=session, name="too late")
    await web.end()
    assert (await door.admin.ask("session.get", session=session))["name"] != "too late"


async def test_a_client_that_revokes_its_own_token_gets_the_response_first(door):
    web = await door.member(await door.token("own"), role="admin")
    assert await web.ask("token.revoke", name="own") == {}
    assert await web.end() == 4401


@pytest.mark.parametrize("damage", ["open to others", "cut short", "replaced by a link", "empty"])
async def test_an_unsafe_token_file_admits_no_client_and_status_reports_it(door, token, damage):
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
    """Send a wrong token and wait for the reaction."""
    async with visitor(door.url) as web:
        assert await web.upgrade() == 101
        web.send("hello", token=f"zot_{number}")
        return await web.end()


async def keep_guessing(door, numbers):
    for number in numbers:
        with suppress(OSError):  # the lobby is full, and the oldest visitors are disconnected
            await guess(door, number)


async def keep_guessing_without_waiting(door, numbers):
    for number in numbers:
        with suppress(OSError):
            async with visitor(door.url) as web:
                if await web.upgrade() == 101:
                    web.send("hello", token=f"zot_{number}")
                    await web.writer.drain()


async def test_a_valid_token_is_always_admitted_despite_failures_at_its_address(door, token):
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


async def test_refusals_are_delayed_after_ten_wrong_tokens_of_an_address(door, token, caplog):
    for number in range(BURST):
        assert await guess(door, number) == 4401
    waiting = [await door.stranger() for _ in range(4)]
    for web in waiting:
        web.send("hello", token="zot_wrong")
        web.write(masked(PING, b"still here?"))
        assert await web.raw() == (PONG, b"still here?")
        web.send("hello", token=token)  # a second attempt is ignored
    for web in waiting:
        assert await web.raw() == (CLOSE, (4401).to_bytes(2, "big"))
    assert caplog.text.count("authentication failed for 127.0.0.1") == BURST + len(waiting)


async def test_clients_waiting_for_a_refusal_take_no_place_of_others(door, token):
    for number in range(BURST):
        await guess(door, number)
    early = await door.stranger()
    for _ in range(MAX_VISITORS + BURST):
        web = await door.stranger()
        web.send("hello", token="zot_wrong")
        web.write(masked(PING))
        with suppress(ClosedError):
            await web.raw()  # refused, or displaced from the lobby
    assert (await early.hello(token))["role"] == "approve"


async def test_metrics_are_available_with_a_valid_token_despite_earlier_failures(door, token):
    codes = []
    for _ in range(BURST + 2):
        code, headers, _ = await (await door.visitor()).request("/metrics", Authorization="Bearer zot_wrong")
        codes.append(code)
    assert codes == [401] * BURST + [429] * 2
    assert headers["retry-after"] == "1"
    assert (await (await door.visitor()).request("/metrics", Authorization=f"Bearer {token}"))[0] == 200


async def test_connected_clients_are_not_affected_by_failures_at_their_address(door, token):
    early = await door.stranger()
    for number in range(BURST):
        assert await guess(door, number) == 4401
    assert (await early.hello(token))["role"] == "approve"


# --- limited tokens ---


async def test_a_token_for_one_session_can_see_and_do_nothing_else(door):
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


async def test_a_token_for_one_session_gets_no_events_of_others(door):
    own, other = await new_session(door.admin, door), await new_session(door.admin, door)
    web = await door.member(await door.token("guest", "read", session=own))
    await web.ask("subscribe", topics=["sessions", "extensions", "trust"])
    for session in (other, own):
        await door.admin.ask("session.rename", session=session, name="renamed")
    assert (await web.event())["session"] == own


async def test_a_token_below_approve_cannot_make_the_mode_more_permissive(door):
    own = await new_session(door.admin, door, mode="ask")
    web = await door.member(await door.token("guest", "submit", session=own))
    assert await web.refused("session.configure", session=own, mode="yolo") == "forbidden"
