"""Environment and keys: what tools run in, who gets a key, and where none may be found."""

import os
import signal

import pytest

from zotd.testing.script import CallPart, calls, text

KEY = "sk-a-key-that-nobody-may-find"

KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}


def show_environment():
    return calls(CallPart("bash", {"command": "env"}))


def printed(events):
    """The environment that a tool printed."""
    (result,) = [event for event in events if event["type"] == "tool_result"]
    return dict(line.split("=", 1) for line in result["content"][0]["text"].splitlines() if "=" in line)


async def test_tools_run_in_the_clients_environment_without_its_keys_and_our_tokens(house, model, vendor):
    server = await model(show_environment(), text("ok"))
    withheld = dict.fromkeys((*KEYS.values(), "ZOT_X_TOKEN", "ZOTCORE_RPC_TOKEN", "ZOTCORE_X"), KEY)
    env = {"PATH": os.environ["PATH"], "MINE": "walrus", "VIRTUAL_ENV": "/venv"}
    talk = await house.create(vendor, server, env=env | withheld)
    seen = printed(await talk.run())
    assert seen["MINE"] == "walrus"
    assert seen["VIRTUAL_ENV"] == "/venv"
    assert not withheld.keys() & seen.keys()
    assert KEY not in str(seen)


async def test_the_environment_of_the_last_client_that_attached_counts(house, model):
    server = await model(show_environment(), text("ok"), show_environment(), text("ok"))
    talk = await house.create("openai", server, env={"PATH": os.environ["PATH"], "WHO": "first"})
    assert printed(await talk.run())["WHO"] == "first"
    second = await house.follow(talk.id, env={"PATH": os.environ["PATH"], "WHO": "second", KEYS["openai"]: KEY})
    seen = printed(await second.run())
    assert seen["WHO"] == "second"
    assert KEYS["openai"] not in seen


async def test_a_reader_does_not_choose_what_tools_run_in(house, model):
    server = await model(show_environment(), text("ok"))
    talk = await house.create("openai", server, env={"PATH": os.environ["PATH"], "WHO": "owner"})
    await house.follow(talk.id, await house.connect(role="read"), env={"PATH": "/evil", "WHO": "reader"})
    assert printed(await talk.run())["WHO"] == "owner"


async def test_a_key_from_the_environment_goes_to_no_url_that_came_with_a_request(house, model, vendor):
    server = await model(text("hi"))
    env = {"PATH": os.environ["PATH"], KEYS[vendor]: KEY}
    talk = await house.create(vendor, server, env=env, secrets={})
    await talk.run()
    assert KEY not in str(server.requests)


async def test_a_key_from_the_environment_goes_to_a_url_from_the_configuration(tmp_path, process, model, vendor):
    server = await model(text("hi"))
    url = {"anthropic": server.url, "openai": server.openai_url}[vendor]
    (process.place.home / "config.toml").write_text(f'[providers.{vendor}]\nbase_url = "{url}"\n')
    process.restart(signal.SIGTERM)
    talk = await process.create(vendor, None, env={"PATH": os.environ["PATH"], KEYS[vendor]: KEY}, secrets={})
    await talk.run()
    assert KEY in str(server.requests[0].headers)


async def test_a_key_is_in_no_file_log_or_status(process, model, vendor):
    server = await model(calls(CallPart("bash", {"command": "env; exit 3"})), text("ok"))
    client = await process.connect(role="admin")
    talk = await process.create(
        vendor, server, client=client, secrets={"api_key": KEY}, env={"PATH": os.environ["PATH"], KEYS[vendor]: KEY}
    )
    await talk.run()
    assert KEY in str(server.requests[0].headers)
    await talk.ask("session.configure", secrets={"api_key": KEY + "2"}, env={KEYS[vendor]: KEY})
    for command in ("daemon.status", "session.list"):
        await client.ask(command)
    for command in ("session.get", "get_state", "get_messages", "session.export", "attach"):
        await talk.ask(command)
    client.write(b'{"type":"session.create","cwd":"/","secrets":{"api_key":"%b"' % KEY.encode() + b"\n")
    await client.answer("session.create", cwd="/no/such", secrets={"api_key": KEY})
    await client.ask("ping")
    assert KEY not in str(client.seen)
    process.daemon.end()
    files = [path for path in process.place.folder.rglob("*") if path.is_file()]
    assert {"zot.db", "zotd.log"} <= {path.name for path in files}
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


GONE = {
    "a flag": {"secrets": {"api_key": KEY}},
    "the client's environment": {"env": {"PATH": os.environ["PATH"], "ANTHROPIC_API_KEY": KEY}, "secrets": {}},
}


@pytest.mark.parametrize("source", GONE)
async def test_a_session_whose_key_is_gone_after_a_restart_is_blocked_and_says_so(process, source):
    client = await process.connect()
    talk = await process.create("anthropic", None, client=client, **GONE[source])
    process.restart(signal.SIGKILL)
    late = await process.follow(talk.id)
    for command in ("prompt", "compact"):
        response = await late.client.answer(command, session=talk.id, message="go")
        assert response["code"] == "blocked"
        assert "key" in response["error"]
        assert KEY not in response["error"]


async def test_a_key_that_came_by_a_flag_is_never_replaced_by_another_one(process, model, vendor):
    """Neither by none, to the URL that it came with."""
    server = await model(text("hi"), text("hi"))
    talk = await process.create(vendor, server)
    await talk.run()
    process.restart(signal.SIGKILL)
    late = await process.follow(talk.id, env={"PATH": os.environ["PATH"], KEYS[vendor]: KEY})
    assert await late.refused("prompt", message="again") == "blocked"
    assert len(server.requests) == 1
    await late.ask("session.configure", secrets={"api_key": "sk-scripted-key"})
    assert (await late.run())[-1]["type"] == "done"
