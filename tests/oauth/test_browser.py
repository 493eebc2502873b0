"""A login with a browser: the authorization server is real, and so is the redirect to the listener."""

import asyncio
import time
from urllib.parse import parse_qs, urlencode, urlsplit

import aiohttp
import msgspec
import pytest

from zotd.oauth.browser import BrowserLogin
from zotd.oauth.protocol import OAuthError, Problem
from zotd.testing.live_daemon import free_port


async def browse(url, **options):
    """What a browser does: follow the redirect; returns status and text of the last page."""
    async with aiohttp.ClientSession() as session, session.get(url, **options) as answer:
        return answer.status, await answer.text()


def redirect_of(login):
    """The redirect URI and the state of a login."""
    params = parse_qs(urlsplit(login.url).query)
    return params["redirect_uri"][0], params["state"][0]


async def test_a_redirect_with_the_right_state_gets_tokens_by_pkce(server, client, send):
    async with BrowserLogin(client, send, clock=time.time) as login:
        status, text = await browse(login.url)
        tokens = await login.finish()
    assert (status, "You are logged in" in text) == (200, True)
    assert tokens.access_token in server.access_tokens
    assert tokens.refresh_token in server.refresh_tokens


async def test_a_refusal_on_the_page_is_told(server, client, send):
    server.consent = "deny"
    async with BrowserLogin(client, send, clock=time.time) as login:
        assert "The login was refused: access_denied" in (await browse(login.url))[1]
        with pytest.raises(OAuthError, match="access_denied") as caught:
            await login.finish()
    assert caught.value.problem is Problem.DENIED


async def test_a_redirect_with_a_wrong_state_is_refused_and_the_login_goes_on(server, client, send):
    async with BrowserLogin(client, send, clock=time.time) as login:
        uri, state = redirect_of(login)
        other = "y" if state[0] == "x" else "x"
        for wrong in ("", other + state[1:], state + "x", "é"):
            assert (await browse(f"{uri}?{urlencode({'code': 'stolen', 'state': wrong})}"))[0] == 400
        twice = f"{uri}?code=stolen&state={state}&state={state}"
        assert (await browse(twice))[0] == 400
        await browse(login.url)
        assert (await login.finish()).access_token in server.access_tokens
    assert [path for path, _ in server.requests].count("/oauth/token") == 1


async def test_a_redirect_that_is_repeated_is_not_exchanged_again(server, client, send):
    async with BrowserLogin(client, send, clock=time.time) as login:
        uri, state = redirect_of(login)
        await browse(login.url)
        code = next(iter(server.codes))
        assert (await browse(f"{uri}?code={code}&state={state}"))[0] == 410
        await login.finish()
        assert (await browse(f"{uri}?code={code}&state={state}"))[0] == 410
    assert [path for path, _ in server.requests].count("/oauth/token") == 1


@pytest.mark.parametrize("path", ["/", "/callback/", "/callbackx", "//callback", "/CALLBACK"])
async def test_only_the_exact_path_is_the_redirect(server, client, send, path):
    async with BrowserLogin(client, send, clock=time.time) as login:
        uri, state = redirect_of(login)
        base = uri.removesuffix("/callback")
        assert (await browse(f"{base}{path}?code=c&state={state}"))[0] == 404
        async with aiohttp.ClientSession() as session:
            assert (await session.post(uri, data={"code": "c", "state": state})).status == 404
        await browse(login.url)
        await login.finish()


async def test_a_code_of_another_login_is_refused_by_the_server(server, client, send):
    async with (
        BrowserLogin(client, send, clock=time.time) as mine,
        BrowserLogin(client, send, clock=time.time) as other,
    ):
        await browse(other.url)
        stolen = next(iter(server.codes))
        uri, state = redirect_of(mine)
        await browse(f"{uri}?code={stolen}&state={state}")
        with pytest.raises(OAuthError, match="invalid_grant") as caught:
            await mine.finish()
        assert caught.value.problem is Problem.REFUSED
        await other.finish()


async def test_nothing_that_a_stranger_sends_ends_the_login(server, client, send):
    async with BrowserLogin(client, send, clock=time.time) as login:
        uri, _ = redirect_of(login)
        port = urlsplit(uri).port
        for rubbish in (
            b"\r\n\r\n",
            b"GET\r\n\r\n",
            b"GET http://[ HTTP/1.1\r\n\r\n",
            b"\xff\xfe\r\n\r\n",
            b"x" * 40_000,
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(rubbish)
            writer.write_eof()
            await reader.read()
            writer.close()
        await browse(login.url)
        assert (await login.finish()).access_token in server.access_tokens


async def test_the_listener_is_gone_after_the_login(server, client, send):
    async with BrowserLogin(client, send, clock=time.time) as login:
        uri, _ = redirect_of(login)
    with pytest.raises(aiohttp.ClientConnectorError):
        await browse(uri)


async def test_a_taken_port_gives_way_to_the_next_and_then_is_named(client, send):
    holder = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    taken, free = holder.sockets[0].getsockname()[1], free_port()
    async with holder:
        both = msgspec.structs.replace(client, redirect_ports=(taken, free))
        async with BrowserLogin(both, send, clock=time.time) as login:
            assert urlsplit(redirect_of(login)[0]).port == free
        with pytest.raises(OAuthError, match=f"port {taken} is in use") as caught:
            async with BrowserLogin(msgspec.structs.replace(client, redirect_ports=(taken,)), send, clock=time.time):
                pass
    assert caught.value.problem is Problem.LOCAL


async def test_the_page_repeats_nothing_that_could_run(server, client, send):
    async with BrowserLogin(client, send, clock=time.time) as login:
        uri, state = redirect_of(login)
        async with aiohttp.ClientSession() as session:
            script = urlencode({"error": "<script>alert(1)</script>", "state": state})
            answer = await session.get(f"{uri}?{script}")
            assert "<script>" not in await answer.text()
            assert answer.headers["Content-Security-Policy"] == "default-src 'none'"
            assert answer.headers["Referrer-Policy"] == "no-referrer"
