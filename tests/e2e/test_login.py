"""Giving the daemon a key: where it goes, what goes on with it, and where nobody may find it."""

import json
import stat
from contextlib import AsyncExitStack

import pytest

from tests.e2e.conftest import House
from zotd.testing.live_daemon import serving
from zotd.testing.script import text

KEY = "sk-a-key-that-nobody-may-find"


@pytest.fixture
async def house_with(tmp_path, monkeypatch):
    """`await house_with(server)`: a daemon whose configuration says that OpenAI is there; keys go to that URL."""
    async with AsyncExitStack() as stack:

        async def start(server):
            home = tmp_path / "zot"
            home.mkdir(mode=0o700)
            (home / "config.toml").write_text(f'[providers.openai]\nbase_url = "{server.openai_url}"\n')
            place = await stack.enter_async_context(serving(tmp_path))
            monkeypatch.setenv("HOME", place.env["HOME"])
            return House(stack, place)

        yield start


@pytest.fixture
async def house(house_with, model):
    """One whose vendor answers anybody."""
    return await house_with(await model(text("hi"), text("again")))


def auth_file(house):
    return house.place.home / "auth.json"


async def key_of(client, provider="openai", **scope):
    found = await client.ask("auth.list", **scope)
    return next(one for one in found["providers"] if one["provider"] == provider)


async def session_without_key(house):
    """A session that was made while there was a key, which is gone."""
    admin = await house.connect(role="admin")
    await admin.ask("auth.login", provider="openai", api_key="sk-for-a-moment")
    talk = await house.create("openai", None, secrets=None, model="gpt-4o")
    await admin.ask("auth.logout", provider="openai")
    return admin, talk


async def test_a_key_is_stored_for_its_user_only_and_what_else_is_there_stays(house):
    auth_file(house).write_text('{"telegram": {"api_key": "123:x", "note": "mine"}}')
    auth_file(house).chmod(0o600)
    admin = await house.connect(role="admin")
    said = await admin.ask("auth.login", provider="openai", api_key=f" {KEY}\n")
    assert (said["source"], said["stored"]) == ("auth.json", True)
    assert stat.S_IMODE(auth_file(house).stat().st_mode) == 0o600
    stored = {"openai": {"api_key": KEY}, "telegram": {"api_key": "123:x", "note": "mine"}}
    assert json.loads(auth_file(house).read_text()) == stored
    said = await admin.ask("auth.logout", provider="openai")
    assert (said["source"], said["stored"]) == (None, False)
    assert json.loads(auth_file(house).read_text()).keys() == {"telegram"}
    assert await admin.refused("auth.logout", provider="openai") == "not_found"


async def test_a_key_is_tried_with_its_vendor_and_nothing_is_stored_by_that(house_with, model):
    server = await model()
    house = await house_with(server)
    admin = await house.connect(role="admin")

    async def outcome(key, provider="openai"):
        return (await admin.ask("auth.check", provider=provider, api_key=key))["outcome"]

    assert await outcome(KEY) == "unknown"  # a server without a list of models
    server.key = KEY
    assert await outcome(f" {KEY}\n") == "accepted"
    assert await outcome("sk-wrong") == "refused"
    await server.__aexit__(None, None, None)
    assert await outcome(KEY) == "unreachable"
    assert server.tried == [KEY, KEY, "sk-wrong"]
    assert server.requests == []
    assert not auth_file(house).exists()
    person = await house.connect()
    assert await person.refused("auth.check", provider="openai", api_key=KEY) == "forbidden"
    assert await admin.refused("auth.check", provider="ollama", api_key=KEY) == "bad_request"


async def test_who_can_log_in_gets_a_session_before_there_is_a_key(house):
    admin = await house.connect(role="admin")
    talk = await house.create("openai", None, secrets=None, model="gpt-4o", keyless=True)
    assert (await talk.client.answer("prompt", session=talk.id, message="go"))["code"] == "blocked"
    await admin.ask("auth.login", provider="openai", api_key=KEY)
    assert (await talk.run())[-1]["type"] == "done"


async def test_without_any_key_such_a_session_has_the_first_vendor(house):
    client = await house.connect()
    cwd = str(house.place.cwd)
    assert await client.refused("session.create", cwd=cwd) == "blocked"
    created = await client.ask("session.create", cwd=cwd, keyless=True)
    assert created["session"]["provider"] == "anthropic"


async def test_a_blocked_session_continues_with_the_next_prompt(house):
    admin, talk = await session_without_key(house)
    answer = await talk.client.answer("prompt", session=talk.id, message="go")
    assert answer["code"] == "blocked"
    assert answer["error"] == "no key for OpenAI: set OPENAI_API_KEY, pass --api-key, or run: zotctl login openai"
    await admin.ask("auth.login", provider="openai", api_key=KEY)
    assert (await talk.run())[-1]["type"] == "done"
    assert ("assistant", ["hi"]) in await talk.texts()


async def test_the_key_goes_to_the_vendor_and_is_found_nowhere_else(house_with, model, caplog):
    server = await model(text("hi"))
    house = await house_with(server)
    caplog.set_level("DEBUG")
    admin, talk = await session_without_key(house)
    await admin.ask("auth.login", provider="openai", api_key=KEY)
    await talk.run()
    assert server.requests[0].headers["Authorization"] == f"Bearer {KEY}"
    await key_of(admin)
    assert KEY not in str(admin.seen)
    assert KEY not in caplog.text
    files = [path for path in house.place.folder.rglob("*") if path.is_file() and path != auth_file(house)]
    assert [path.name for path in files if KEY.encode() in path.read_bytes()] == []


async def test_an_invalid_key_is_refused_without_being_repeated(house):
    admin = await house.connect(role="admin")
    for wrong in ("", "  ", "two words", f"{KEY}\x1b[2J", f"{KEY}é", KEY * 1000):
        answer = await admin.answer("auth.login", provider="openai", api_key=wrong)
        assert answer["code"] == "bad_request"
        assert "words" not in answer["error"]
        assert KEY not in answer["error"]
    assert await admin.refused("auth.login", provider="nobody", api_key=KEY) == "bad_request"
    assert await admin.refused("auth.login", provider="ollama", api_key=KEY) == "bad_request"
    assert not auth_file(house).exists()


async def test_a_file_that_others_can_read_is_neither_read_nor_replaced(house):
    auth_file(house).write_text("{}")
    auth_file(house).chmod(0o644)
    admin = await house.connect(role="admin")
    answer = await admin.answer("auth.login", provider="openai", api_key=KEY)
    assert answer["code"] == "blocked"
    assert "chmod 600" in answer["error"]
    assert auth_file(house).read_text() == "{}"


async def test_the_list_says_which_place_counts(house):
    admin = await house.connect(role="admin")
    assert (await key_of(admin))["source"] is None
    await admin.ask("auth.login", provider="openai", api_key=KEY)
    assert (await key_of(admin))["source"] == "auth.json"
    talk = await house.create("openai", None, secrets=None, env={"OPENAI_API_KEY": "sk-of-the-client"})
    one = await key_of(admin, session=talk.id)
    assert (one["source"], one["stored"]) == ("environment", True)
    talk = await house.create("openai", None, secrets={"api_key": "sk-of-the-option"})
    assert (await key_of(admin, session=talk.id))["source"] == "option"
    assert await key_of(admin, "ollama") == {
        "provider": "ollama",
        "title": "Ollama",
        "variables": [],
        "source": None,
        "stored": False,
        "methods": [],
        "plan": "",
        "login": None,
        "note": "",
        "own_login": "",
        "settings": [],
    }


async def test_only_an_admin_changes_keys(house):
    person = await house.connect()
    assert await person.refused("auth.login", provider="openai", api_key=KEY) == "forbidden"
    assert await person.refused("auth.logout", provider="openai") == "forbidden"
    assert (await key_of(person))["source"] is None
