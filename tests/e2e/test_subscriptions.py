"""Sessions that run on a subscription: a real daemon, an authorization server and a model server that checks tokens."""

import json
import stat
from contextlib import AsyncExitStack

import aiohttp
import pytest

from tests.e2e.conftest import House
from zotd.testing.auth_server import AuthServer
from zotd.testing.file_keyring import VARIABLE
from zotd.testing.live_daemon import DaemonProcess, serving
from zotd.testing.model_server import ModelServer
from zotd.testing.script import CallPart, Refusal, ScriptedReply, text


class Subscribed(House):
    """A daemon whose vendors are an authorization server and a model server of the test."""

    def __init__(self, stack, place, auth, model):
        super().__init__(stack, place)
        self.auth = auth
        self.model = model

    async def log_in(self, admin, provider="copilot", **params):
        """Log in by device code, and do what the user does."""
        begun = await admin.ask("auth.begin", provider=provider, method="device", **params)
        self.auth.enter(begun["code"])
        return await admin.ask("auth.wait", login=begun["login"])

    async def talk(self, provider="copilot"):
        return await self.create(provider, None, secrets=None)

    @property
    def stored(self):
        return json.loads((self.place.home / "logins.json").read_text())


@pytest.fixture
async def house(tmp_path, monkeypatch):
    async with AsyncExitStack() as stack:
        auth = await stack.enter_async_context(AuthServer())
        replies = iter(
            [ScriptedReply([CallPart("bash", {"command": "true"})]), text("done"), text("again"), text("more")]
        )

        def answer(received):
            if not auth.accepts(received.headers.get("Authorization")):
                return Refusal(401, "token expired")
            return next(replies)

        model = await stack.enter_async_context(ModelServer(answer))
        home = tmp_path / "zot"
        home.mkdir(mode=0o700)
        sections = (
            f'[providers.{name}]\nbase_url = "{model.openai_url}"\nlogin_url = "{auth.url}"\napi = "{api}"\n'
            for name, api in (("copilot", "chat"), ("kimi-code", "chat"), ("chatgpt", "responses"))
        )
        (home / "config.toml").write_text("".join(sections))
        place = await stack.enter_async_context(serving(tmp_path))
        monkeypatch.setenv("HOME", place.env["HOME"])
        yield Subscribed(stack, place, auth, model)


async def info(client, provider="copilot"):
    found = await client.ask("auth.list")
    return next(one for one in found["providers"] if one["provider"] == provider)


async def test_a_run_uses_the_key_that_was_exchanged_for_the_login(house):
    admin = await house.connect(role="admin")
    assert (await info(admin))["source"] is None
    assert await house.log_in(admin) == {"state": "done", "sentence": ""}
    found = await info(admin)
    assert (found["source"], found["login"]["account"], found["login"]["place"]) == ("login", "octocat", "file")
    assert stat.S_IMODE((house.place.home / "logins.json").stat().st_mode) == 0o600
    talk = await house.talk()
    assert (await talk.run())[-1]["type"] == "done"
    first, second = house.model.requests
    key = house.stored["copilot"]["key"]["access_token"]
    for request in (first, second):  # the first is made by the SDK, the second by us
        sent = {name.lower(): value for name, value in request.headers.items()}
        assert sent["authorization"] == f"Bearer {key}"
        assert sent["editor-version"].startswith("zot/")
        assert sent["user-agent"].startswith("zot/")


async def test_a_run_on_chatgpt_asks_in_the_responses_api_for_the_account_of_the_login(house):
    admin = await house.connect(role="admin")
    assert (await house.log_in(admin, "chatgpt"))["state"] == "done"
    talk = await house.talk("chatgpt")
    assert (await talk.run())[-1]["type"] == "done"
    for request in house.model.requests:
        sent = {name.lower(): value for name, value in request.headers.items()}
        assert request.path.endswith("/responses")
        assert sent["chatgpt-account-id"] == "acc-1"
        assert sent["originator"] == "zot"
        assert request.body["store"] is False
        assert request.body["instructions"]
        assert "max_output_tokens" not in request.body


async def test_a_token_that_ends_in_the_middle_of_a_run_is_renewed_and_the_run_goes_on(house):
    admin = await house.connect(role="admin")
    await house.log_in(admin, "kimi-code")
    talk = await house.talk("kimi-code")
    first = house.stored["kimi-code"]["tokens"]["access_token"]
    house.auth.access_tokens.clear()  # the server thinks that it has expired; our clock does not
    events = await talk.run()
    assert events[-1]["type"] == "done"
    assert [event["type"] for event in events if event["type"] in {"error", "retry"}] == []
    assert house.auth.refreshes == 1
    used = [request.headers["Authorization"].removeprefix("Bearer ") for request in house.model.requests]
    assert used[0] == first
    assert len(set(used[1:])) == 1
    assert used[1] == house.stored["kimi-code"]["tokens"]["access_token"] != first


async def test_a_revoked_login_ends_the_run_with_the_command_and_the_session_continues_after_it(house):
    admin = await house.connect(role="admin")
    await house.log_in(admin, "kimi-code")
    talk = await house.talk("kimi-code")
    house.auth.revoke_all()
    await talk.ask("prompt", message="go")
    failed = (await talk.until("error"))[-1]
    assert failed["message"].startswith("Kimi Code no longer accepts this login (invalid_grant: ")
    assert failed["message"].endswith("; run: zotctl login kimi-code")
    await talk.until("done")
    assert (await info(admin, "kimi-code"))["login"]["ended"].startswith("invalid_grant")
    await house.log_in(admin, "kimi-code")
    assert (await info(admin, "kimi-code"))["login"]["ended"] == ""
    assert (await talk.run("and now"))[-1]["type"] == "done"
    assert ("user", ["go"]) in await talk.texts()


async def test_an_auth_server_that_is_away_delays_the_run_and_loses_nothing(house):
    admin = await house.connect(role="admin")
    await house.log_in(admin, "kimi-code")
    talk = await house.talk("kimi-code")
    house.auth.access_tokens.clear()
    house.auth.status = 503
    await talk.ask("prompt", message="go")
    retry = (await talk.until("retry"))[-1]
    assert "cannot be renewed" in str(retry)
    house.auth.status = 200
    assert (await talk.until("done"))[-1]["type"] == "done"
    assert ("assistant", ["bash"]) in await talk.texts()


async def test_a_refused_device_code_and_a_cancelled_login_store_nothing(house):
    admin = await house.connect(role="admin")
    begun = await admin.ask("auth.begin", provider="copilot", method="device")
    house.auth.enter(begun["code"], "access_denied")
    outcome = await admin.ask("auth.wait", login=begun["login"])
    assert outcome["state"] == "failed"
    assert "refused (access_denied" in outcome["sentence"]
    begun = await admin.ask("auth.begin", provider="copilot", method="device")
    assert (await admin.ask("auth.wait", login=begun["login"], wait_s=0))["state"] == "pending"
    await admin.ask("auth.cancel", login=begun["login"])
    assert (await admin.ask("auth.wait", login=begun["login"]))["sentence"] == "it was cancelled"
    assert not (house.place.home / "logins.json").exists()
    assert await admin.refused("auth.wait", login="login_unknown") == "not_found"


async def test_an_account_without_a_subscription_is_told_at_once(house):
    house.auth.subscribed = False
    outcome = await house.log_in(await house.connect(role="admin"))
    assert outcome["sentence"].startswith("GitHub Copilot gives this account no access (no access to Copilot")
    assert not (house.place.home / "logins.json").exists()


async def test_a_login_with_a_browser_is_answered_by_the_redirect(house):
    admin = await house.connect(role="admin")
    begun = await admin.ask("auth.begin", provider="chatgpt", method="browser")
    assert begun["url"].startswith(f"{house.auth.url}/oauth/authorize?")
    assert "originator=zot" in begun["url"]
    async with aiohttp.ClientSession() as session, session.get(begun["url"]) as page:
        assert page.url.host == "localhost"
        assert page.url.port in {1455, 1457}
        assert "You are logged in" in await page.text()
    assert (await admin.ask("auth.wait", login=begun["login"]))["state"] == "done"
    found = await info(admin, "chatgpt")
    assert found["login"]["account"] == "octocat@example.org"
    assert house.stored["chatgpt"]["account_id"] == "acc-1"


async def test_the_device_code_of_chatgpt_is_exchanged_like_one_of_a_browser(house):
    admin = await house.connect(role="admin")
    assert (await house.log_in(admin, "chatgpt"))["state"] == "done"
    assert (await info(admin, "chatgpt"))["login"]["account"] == "octocat@example.org"
    assert [path for path, _ in house.auth.requests][-1] == "/oauth/token"


async def test_a_second_login_replaces_one_that_waits(house):
    admin = await house.connect(role="admin")
    first = await admin.ask("auth.begin", provider="chatgpt", method="browser")
    second = await admin.ask("auth.begin", provider="chatgpt", method="browser")
    assert first["url"] != second["url"]
    assert await admin.refused("auth.wait", login=first["login"]) == "not_found"
    await admin.ask("auth.cancel", login=second["login"])


async def test_logout_revokes_and_forgets(house):
    admin = await house.connect(role="admin")
    await house.log_in(admin, "chatgpt")
    token = house.stored["chatgpt"]["tokens"]["refresh_token"]
    assert token in house.auth.refresh_tokens
    assert (await admin.ask("auth.logout", provider="chatgpt"))["note"] == ""
    assert token not in house.auth.refresh_tokens
    assert house.stored == {}
    assert await admin.refused("auth.logout", provider="chatgpt") == "not_found"
    await house.log_in(admin, "copilot")
    assert "no way to revoke" in (await admin.ask("auth.logout", provider="copilot"))["note"]
    assert house.stored == {}


async def test_without_a_login_a_prompt_says_how_to_log_in(house):
    admin = await house.connect(role="admin")
    talk = await house.create("kimi-code", None, secrets=None, keyless=True)
    answer = await talk.client.answer("prompt", session=talk.id, message="go")
    assert answer["error"] == "you are not logged in to Kimi Code; run: zotctl login kimi-code"
    assert await admin.refused("auth.begin", provider="anthropic") == "bad_request"
    assert await admin.refused("auth.begin", provider="kimi-code", method="browser") == "bad_request"
    assert await admin.refused("auth.login", provider="kimi-code", api_key="x") == "bad_request"


async def test_a_url_that_came_with_a_request_does_not_get_the_token(house):
    admin = await house.connect(role="admin")
    await house.log_in(admin, "copilot")
    async with ModelServer([text("hi")]) as foreign:
        talk = await house.create("copilot", None, secrets=None, base_url=foreign.openai_url)
        await talk.run()
        assert house.stored["copilot"]["key"]["access_token"] not in str(foreign.requests[0].headers)


async def test_no_token_is_found_anywhere_but_in_its_file(house, caplog):
    caplog.set_level("DEBUG")
    admin = await house.connect(role="admin")
    await house.log_in(admin, "copilot")
    talk = await house.talk()
    await talk.run()
    tokens = [*house.auth.access_tokens, *house.auth.refresh_tokens, *house.auth.keys]
    assert len(tokens) == 3
    own = house.place.home / "logins.json"
    for token in tokens:
        assert token not in caplog.text
        assert token not in str(admin.seen) + str(talk.client.seen)
        files = [path for path in house.place.folder.rglob("*") if path.is_file() and path != own]
        assert [path.name for path in files if token.encode() in path.read_bytes()] == []


async def test_with_a_keyring_the_tokens_are_there_and_requests_find_them(tmp_path):
    extra = {
        "ZOT_KEYRING": "true",
        "PYTHON_KEYRING_BACKEND": "zotd.testing.file_keyring.FileKeyring",
        VARIABLE: str(tmp_path / "ring"),
    }
    async with AuthServer() as auth, ModelServer([text("hi")]) as model, AsyncExitStack() as stack:
        home = tmp_path / "zot"
        home.mkdir(mode=0o700)
        urls = f'base_url = "{model.openai_url}"\nlogin_url = "{auth.url}"\n'
        (home / "config.toml").write_text(f"[providers.kimi-code]\n{urls}")
        daemon = stack.enter_context(DaemonProcess(tmp_path, extra))
        house = Subscribed(stack, daemon.place, auth, model)
        admin = await house.connect(role="admin")
        await house.log_in(admin, "kimi-code")
        assert (await info(admin, "kimi-code"))["login"]["place"] == "keyring"
        (token,) = auth.access_tokens
        assert token not in (home / "logins.json").read_text()
        assert token in (tmp_path / "ring").read_text()
        talk = await house.talk("kimi-code")
        assert (await talk.run())[-1]["type"] == "done"
        assert model.requests[0].headers["Authorization"] == f"Bearer {token}"
        await admin.ask("auth.logout", provider="kimi-code")
        assert token not in (tmp_path / "ring").read_text()


async def test_only_an_admin_logs_in(house):
    person = await house.connect()
    assert await person.refused("auth.begin", provider="copilot") == "forbidden"
    assert await person.refused("auth.wait", login="x") == "forbidden"


async def test_a_login_that_waits_ends_with_the_daemon(house):
    admin = await house.connect(role="admin")
    begun = await admin.ask("auth.begin", provider="chatgpt", method="browser")
    assert begun["lifetime_s"] == 600.0  # what is left of it when the daemon ends is found by the fixtures of all tests
