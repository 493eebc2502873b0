"""Every command through the WebSocket door without a token, with a low role, and with a token for one session."""

import contextlib

import msgspec
import pytest
import pytest_asyncio

from tests.api.conftest import Door
from tests.api.web import CLOSE
from zotd.testing.live_daemon import serving
from zotd.testing.model_server import ModelServer
from zotd.testing.script import text
from zotd.testing.wire_client import WireClient
from zotd.wire.api import BY_NAME, COMMANDS, Role

pytestmark = pytest.mark.asyncio(loop_scope="module")

SESSION = {"provider": "ollama", "model": "none"}

FIELDS = {
    "name": "some-name",
    "path": "/nowhere/at/all",
    "source": "/nowhere/at/all",
    "cwd": "/nowhere/at/all",
    "role": "read",
    "message": "hi",
    "command": "true",
    "query": "words",
    "topics": [],
    "model": "none",
    "reasoning": "off",
    "mode": "ask",
    "seq": 1,
    "focused": False,
    "kind": "command",
    "text": "a",
    "input": "i",
    "position": 0,
    "approval": "a",
    "args_digest": "d",
    "decision": "deny",
    "panel_id": "p",
    "key": "a",
    "width": 80,
    "height": 24,
    "provider": "ollama",
    "api_key": "k",
    "login": "login_1",
    "channel": "c",
    "code": "1",
    "sender": "s",
    "servers": {},
    "request": "f_1",
    "question": "what?",
    "probe": "stream",
    "endpoint": "https://fcm.googleapis.com/x",
    "public": "p",
    "auth": "a",
    "browser": "d_1",
    "steps": [],
    "timer": "t_1",
    "batch": "b",
    "prompts": [],
    "revision": 0,
    "job": "j1",
    "option": "mode",
    "value": "plan",
}
"""A value for each required field of a command."""

ABOUT_NOTHING = "hello ping subscribe session.list get_models daemon.status daemon.metrics"
"""Commands without a session that a limited token may use; their responses contain nothing about other sessions."""

ABOUT_A_SESSION = """
    attach detach session.get session.history session.image session.tree session.rename session.configure session.rewind session.export
    session.undo session.redo session.plan session.plan_edit session.jobs session.job_move session.job_stop session.changes session.close session.delete presence presence.update get_state get_messages complete workspace.info approval.list
    queue.list queue.withdraw queue.move ext.list ext.doctor ext.reload auth.list prompt abort compact run_command clear
    retry set_model set_reasoning set_mode session.agent_options session.agent_choose panel.key panel.resize panel.close approve shell
    grant.list grant.revoke session.mcp_servers files.offer files.answer
    terminals.offer terminals.answer session.side_question session.family
    timer.list timer.add timer.edit timer.pause timer.resume timer.remove timer.run
"""
"""Commands that a limited token may use for its own session; a new command is refused until it is added here."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def door(tmp_path_factory):
    folder = tmp_path_factory.mktemp("door")
    settings = {"ZOT_WEBSOCKET_LISTEN": "127.0.0.1:0"}
    async with serving(folder, settings) as place, contextlib.AsyncExitStack() as stack:
        admin = await stack.enter_async_context(WireClient.connect(place.socket))
        await admin.ask("hello", role="admin")
        yield Door(stack, place, admin, (await admin.ask("daemon.status"))["websocket"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sessions(door):
    """Ids of the token's own session and of another one."""
    made = [await door.admin.ask("session.create", cwd=str(door.place.cwd), name=name, **SESSION) for name in "ab"]
    return [one["session"]["id"] for one in made]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guest(door, sessions):
    return await door.member(await door.token("guest", "admin", session=sessions[0]), role="admin")


def fields(name, session=None):
    """Valid parameters of a command, about this session if the command has one."""
    known = {field.encode_name: field for field in msgspec.structs.fields(BY_NAME[name].params)}
    needed = {key: FIELDS[key] for key, field in known.items() if field.required}
    return needed | ({"session": session} if session and "session" in known else {})


def takes_session(name):
    return any(field.encode_name == "session" for field in msgspec.structs.fields(BY_NAME[name].params))


async def code(web, name, /, **params):
    answer = await web.answer(name, **params)
    return "" if answer["success"] else answer["code"]


async def test_no_command_is_answered_without_a_token(door):
    for number, name in enumerate(BY_NAME, 1):
        web = await door.stranger(local=(f"127.0.1.{number}", 0))  # wrong tokens are throttled per address
        web.send(name, **fields(name, "s"))
        assert await web.raw() == (CLOSE, (4401).to_bytes(2, "big")), name


async def test_a_read_token_can_read(door, sessions):
    reader = await door.member(await door.token("reader", "read"), role="admin")
    for command in COMMANDS:
        refused = await code(reader, command.name, **fields(command.name, sessions[0])) == "forbidden"
        assert refused == (command.role > Role.READ), command.name


async def test_a_token_for_a_session_gets_nothing_about_another(guest, sessions):
    for name in BY_NAME:
        if takes_session(name):
            others = [
                sessions[1],
                "b",
                sessions[1][:-1],
                f" {sessions[0]}",
                *(["", None] if name != "get_models" else []),
            ]
            said = [await code(guest, name, **{**fields(name), "session": other}) for other in others]
            assert set(said) <= {"forbidden", "bad_request"}, name  # the latter if the value is no text
            assert said[0] == "forbidden", name
        elif name not in ABOUT_NOTHING.split():
            assert await code(guest, name, **fields(name)) == "forbidden", name


async def test_a_token_for_a_session_is_refused_commands_with_wider_effects(guest, sessions):
    for name in BY_NAME.keys() - set(ABOUT_A_SESSION.split()) - set(ABOUT_NOTHING.split()):
        assert await code(guest, name, **fields(name, sessions[0])) == "forbidden", name


async def test_commands_without_a_session_show_a_limited_token_no_other_session(guest, sessions):
    for name in ABOUT_NOTHING.split():
        answer = await guest.answer(name, **fields(name))
        assert answer["success"], name
        assert sessions[1] not in str(answer), name


async def test_a_token_for_a_session_may_use_all_other_commands_there(door, guest, sessions):
    last = ["session.close", "session.delete"]
    for name in [*(name for name in ABOUT_A_SESSION.split() if name not in last), *last]:
        assert await code(guest, name, **fields(name, sessions[0])) != "forbidden", name
    (left,) = (await door.admin.ask("session.list"))["sessions"]
    assert left["id"] == sessions[1]


# --- code execution with a low role ---


async def environment_of(door, session):
    """The environment of the session's commands."""
    client = door.admin
    await client.ask("attach", session=session)
    await client.ask("shell", session=session, command="echo mark=$ZOT_TEST_MARK trust=$ZOT_TRUST")
    events = await client.until("done")
    await client.ask("detach", session=session)
    return str(events)


@pytest.mark.parametrize("command", ["session.create", "session.configure", "attach"])
async def test_a_submit_token_cannot_set_the_environment_of_tools(door, command):
    web = await door.member(await door.token(f"submits-{command}", "submit"))
    env = {"PATH": "/usr/bin:/bin", "ZOT_TEST_MARK": "from-afar", "ZOT_TRUST": "1"}
    made = await web.ask(
        "session.create", cwd=str(door.place.cwd), **SESSION, **({"env": env} if command == "session.create" else {})
    )
    session = made["session"]["id"]
    if command != "session.create":
        await web.ask(command, session=session, env=env)
    shown = await environment_of(door, session)
    assert "mark=" in shown
    assert "from-afar" not in shown


async def test_a_submit_token_cannot_load_extensions(door):
    web = await door.member(await door.token("brings", "submit"))
    brought = {"extensions": [str(door.place.cwd)]}
    assert await web.refused("session.create", cwd=str(door.place.cwd), **SESSION, **brought) == "forbidden"
    session = (await web.ask("session.create", cwd=str(door.place.cwd), **SESSION))["session"]["id"]
    assert await web.refused("session.configure", session=session, **brought) == "forbidden"


ELSEWHERE: dict[str, dict[str, object]] = {
    "base_url": {"base_url": "http://192.0.2.1/v1"},
    "secrets": {"secrets": {"api_key": "mine"}},
}


@pytest.mark.parametrize("what", ELSEWHERE)
@pytest.mark.parametrize("kind", ["all sessions", "one session", "the socket"])
async def test_choosing_the_destination_of_keys_and_prompts_requires_approve(door, what, kind):
    session = (await door.admin.ask("session.create", cwd=str(door.place.cwd), **SESSION))["session"]["id"]
    if kind == "the socket":
        client = await door.local()
        await client.ask("hello", role="submit")
    else:
        scope = {"session": session} if kind == "one session" else {}
        client = await door.member(await door.token(f"{kind[:3]}-{what}", "submit", **scope), role="admin")
    asked = ELSEWHERE[what]
    answer = await client.answer("session.configure", session=session, **asked)
    assert (answer["success"], answer["code"]) == (False, "forbidden")
    if kind != "one session":
        assert f"{what} decides where keys and prompts are sent, which requires the role approve" in answer["error"]
        assert await client.refused("session.create", cwd=str(door.place.cwd), **SESSION, **asked) == "forbidden"
    assert await client.ask("session.configure", session=session, reasoning="low")


async def test_keys_in_the_environment_are_ignored_below_approve(door):
    client = await door.local()
    await client.ask("hello", role="submit")
    env = {"PATH": "/usr/bin:/bin", "OPENAI_API_KEY": "sk-mine", "ZOT_TEST_MARK": "mine"}
    session = (await client.ask("session.create", cwd=str(door.place.cwd), **SESSION, env=env))["session"]["id"]
    for command in ("attach", "session.configure"):
        await client.ask(command, session=session, env=env)
    (openai,) = [
        one for one in (await client.ask("auth.list", session=session))["providers"] if one["provider"] == "openai"
    ]
    assert openai["source"] != "environment"
    assert "mark=mine" in await environment_of(door, session)


@pytest.mark.parametrize("role", ["approve", "admin"])
async def test_a_key_is_not_sent_to_another_destination(door, role):
    async with ModelServer(text("answered") for _ in range(3)) as server:
        first, second = server.openai_url, server.openai_url.replace("127.0.0.1", "localhost")
        given = {"provider": "openai", "model": "m", "base_url": first, "secrets": {"api_key": "sk-for-one-place"}}
        made = await door.admin.ask("session.create", cwd=str(door.place.cwd), **given)
        session = made["session"]["id"]
        web = await door.member(await door.token(f"elsewhere-{role}", role), role=role)
        await web.ask("attach", session=session)
        for base_url in (None, second, first):
            await web.ask("session.configure", session=session, base_url=base_url)
            await web.ask("prompt", session=session, message="go")
            await web.until("done")
        keyed = ["sk-for-one-place" in str(dict(request.headers)) for request in server.requests]
    assert keyed[0]
    assert not any(keyed[1:])


async def test_a_command_beyond_the_token_is_refused_with_advice(door):
    reader = await door.member(await door.token("another", "read"), role="admin")
    answer = await reader.answer("daemon.reload")
    assert answer["code"] == "forbidden"
    assert answer["error"].endswith(
        "needs the role admin, and the token has read: zotctl token create NAME --role admin"
    )
