"""The same logins against a server that is not ours: the endpoints of `oauthlib`, which check PKCE and rotate tokens."""

import asyncio
import json
import time

import aiohttp
import msgspec
import pytest
from aiohttp import web
from oauthlib.oauth2 import RequestValidator, WebApplicationServer

from zotd.logins.desk import send
from zotd.logins.renewal import Renewal
from zotd.logins.vendors import CHATGPT
from zotd.oauth import protocol
from zotd.oauth.browser import BrowserLogin
from zotd.oauth.protocol import OAuthClient, OAuthError, Problem
from zotd.store.logins import VendorLogin
from zotd.testing.http_site import listening


class Validator(RequestValidator):
    """Keeps codes and tokens in memory."""

    def __init__(self):
        super().__init__()
        self.codes: dict[str, dict[str, str]] = {}
        self.tokens: set[str] = set()
        self.refresh_tokens: set[str] = set()

    def validate_client_id(self, client_id, *_, **__):
        return client_id == "me"

    def validate_redirect_uri(self, *given, **_):
        return given[1].startswith("http://127.0.0.1:")

    def validate_response_type(self, *given, **_):
        return given[1] == "code"

    def validate_scopes(self, *_, **__):
        return True

    def get_default_scopes(self, *_, **__):
        return ["all"]

    def save_authorization_code(self, *given, **_):
        _, code, request = given
        self.codes[code["code"]] = {
            "challenge": request.code_challenge,
            "method": request.code_challenge_method,
            "uri": request.redirect_uri,
        }

    def is_pkce_required(self, *_):
        return True

    def get_code_challenge(self, *given):
        return self.codes[given[0]]["challenge"]

    def get_code_challenge_method(self, *given):
        return self.codes[given[0]]["method"]

    def client_authentication_required(self, *_, **__):
        return False

    def authenticate_client_id(self, client_id, request, *_, **__):
        request.client = type("Client", (), {"client_id": client_id})()
        return client_id == "me"

    def validate_code(self, *given, **_):
        given[3].scopes = ["all"]
        return given[1] in self.codes

    def confirm_redirect_uri(self, *given, **_):
        return self.codes[given[1]]["uri"] == given[2]

    def validate_grant_type(self, *_, **__):
        return True

    def invalidate_authorization_code(self, *given, **_):
        del self.codes[given[1]]

    def save_bearer_token(self, token, request, *_, **__):
        self.tokens.add(token["access_token"])
        self.refresh_tokens.add(token["refresh_token"])
        if getattr(request, "grant_type", "") == "refresh_token":
            self.refresh_tokens.discard(request.refresh_token)

    def validate_refresh_token(self, refresh_token, *_, **__):
        return refresh_token in self.refresh_tokens

    def get_original_scopes(self, *_, **__):
        return ["all"]

    def rotate_refresh_token(self, *_):
        return True

    def revoke_token(self, token, *_, **__):
        self.refresh_tokens.discard(token)


class Foreign:
    """The server; every user agrees at once."""

    def __init__(self):
        self.validator = Validator()
        self.server = WebApplicationServer(self.validator)
        self.url = ""

    async def answer(self, request):
        # The library insists on HTTPS in the addresses that it is asked at.
        url, body, headers = f"https://x.example{request.path_qs}", await request.text(), dict(request.headers)
        match request.path:
            case "/authorize":
                scopes, found = self.server.validate_authorization_request(url, "GET", None, headers)
                made = self.server.create_authorization_response(url, "GET", None, headers, scopes, found)
            case "/token":
                made = self.server.create_token_response(url, "POST", body, headers)
            case _:
                made = self.server.create_revocation_response(url, "POST", body, headers)
        return web.Response(status=made[2], headers=made[0], text=made[1] or "")


@pytest.fixture
async def foreign():
    server = Foreign()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, access_log=None)
    server.url = await listening(runner)
    yield server
    await runner.cleanup()


@pytest.fixture
def client(foreign):
    return OAuthClient(
        client_id="me",
        authorize_url=f"{foreign.url}/authorize",
        token_url=f"{foreign.url}/token",
        revoke_url=f"{foreign.url}/revoke",
        scope="all",
    )


async def log_in(client):
    async with BrowserLogin(client, send, clock=time.time) as login:
        async with aiohttp.ClientSession() as session, session.get(login.url) as page:
            assert page.status == 200
        return await login.finish()


async def test_a_login_is_granted_renewed_and_revoked(foreign, client, store):
    tokens = await log_in(client)
    assert tokens.access_token in foreign.validator.tokens
    assert tokens.expires_at is not None
    vendor = msgspec.structs.replace(CHATGPT, client=client)
    store.write("chatgpt", VendorLogin(tokens=tokens))
    renewal = Renewal(vendor, store, send=send, clock=time.time)
    login = await asyncio.to_thread(renewal.replaced, tokens.access_token)
    assert login.tokens.refresh_token not in {"", tokens.refresh_token}
    assert foreign.validator.refresh_tokens == {login.tokens.refresh_token}
    answer = await asyncio.to_thread(send, protocol.revoke_request(client, login.tokens))
    assert (answer.status, foreign.validator.refresh_tokens) == (200, set())
    with pytest.raises(OAuthError) as caught:
        await asyncio.to_thread(renewal.replaced, login.tokens.access_token)
    assert caught.value.problem is Problem.ENDED


async def test_a_code_without_its_verifier_is_refused(foreign, client):
    async with BrowserLogin(client, send, clock=time.time) as login:
        async with aiohttp.ClientSession() as session, session.get(login.url, allow_redirects=False) as page:
            code = page.headers["Location"].partition("code=")[2].partition("&")[0]
        uri = login._listener.uri
    wrong = protocol.exchange_request(client, code=code, verifier="x" * 50, redirect_uri=uri)
    answer = await asyncio.to_thread(send, wrong)
    assert json.loads(answer.body)["error"] == "invalid_grant"
    assert foreign.validator.tokens == set()
