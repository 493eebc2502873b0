"""The program behind `zotctl mcp login` and `logout`.

    login FILE NAME LOGINS CLIENT_ID PORT ──> {"url": …}  ── the user logs in ──> {"ok": …}       lines of JSON
    logout FILE NAME LOGINS               ──> {"ok": …}

The package `mcp` finds the authorization server, registers this program and exchanges the code; what was granted is kept in a
file, from which bridges take it (`access`).
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError, OAuthRegistrationError
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from zotd import logs
from zotd.bridges.mcp.http import HTTP_S
from zotd.bridges.mcp.served import definition
from zotd.oauth import transport
from zotd.oauth.protocol import OAuthError, Problem, TokenSet, checked, page, seconds
from zotd.oauth.redirect import RedirectListener
from zotd.oauth.server_logins import ServerLogin, ServerLoginFile, revoke_request
from zotd.sanitize import one_line
from zotd.wire.mcp import SSE, McpServer, ServerError
from zotd.wire.version import VERSION

REVISION = "2025-11-25"
"""Revision of MCP that the request names; it decides whether the authorization server is told the resource."""

HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "zot", "version": VERSION}},
}
"""A request that a server with a login answers with 401."""

PASTED_BYTES = 16 * 1024
"""Longest address that is read from the terminal."""

Say = Callable[[dict[str, object]], None]


class _Storage:
    """What the package keeps of one login (its `TokenStorage`): nothing of an earlier one."""

    def __init__(self, redirect_uri: str, client_id: str) -> None:
        """`client_id`: of a program that the user has registered; empty: it is registered now."""
        given = {"client_id": client_id, "redirect_uris": [redirect_uri], "token_endpoint_auth_method": "none"}
        self._client = OAuthClientInformationFull.model_validate(given) if client_id else None

    async def get_tokens(self) -> OAuthToken | None:
        """There are none."""
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """They are taken from the provider."""

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return what the user has registered."""
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """It is taken from the provider."""


def main() -> int:
    """Log in or out, as `sys.argv` says; return the exit code 0, whatever the result is."""
    action, file, name, logins, *options = sys.argv[1:]
    # The package logs a traceback of each failure, of which the user gets a sentence.
    with logs.configured(None, level="critical", stderr=True):
        try:
            server = _with_url(definition(Path(file), name, os.environ))
            if action == "login":
                result = asyncio.run(_log_in(server, ServerLoginFile(Path(logins)), options, _say))
            else:
                result = _log_out(server, ServerLoginFile(Path(logins)))
        except ServerError as error:
            result = {"ok": False, "error": logs.masked(f"the MCP server {name} {error}")}
        except OAuthError as error:
            result = {"ok": False, "error": logs.masked(f"the {action} failed: {error}")}
    _say(result)
    return 0


def _with_url(server: McpServer) -> McpServer:
    if not server.url:
        raise ServerError("is started by a command, and has no login here")
    return server


def _say(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


# --- login ------------------------------------------------------------------------------------------------------------


async def _log_in(server: McpServer, file: ServerLoginFile, options: list[str], say: Say) -> dict[str, object]:
    client_id, port = options
    async with RedirectListener(ports=(int(port),)) as listener:
        provider = _provider(server, listener, client_id, say)
        asked_at = time.time()
        try:
            status = await _ask(server, provider)
        except OAuthRegistrationError as error:
            raise OAuthError(Problem.REFUSED, _by_hand(str(error), listener.uri)) from error
        except (OAuthFlowError, ValueError) as error:
            raise OAuthError(Problem.REFUSED, str(error)) from error
        except httpx2.HTTPError as error:
            if provider.context.current_tokens is None:
                raise OAuthError(Problem.UNREACHABLE, f"{str(error) or type(error).__name__}") from error
            status = 0  # logged in; the server has not answered the request itself
    if provider.context.current_tokens is None:
        raise OAuthError(Problem.REFUSED, f"the server has not asked for one (HTTP {status})")
    login = _login_of(provider, asked_at)
    await asyncio.to_thread(file.write, server.url, login)
    return {"ok": True, "server": urlsplit(login.token_url).hostname or "", "status": status}


def _provider(server: McpServer, listener: RedirectListener, client_id: str, say: Say) -> OAuthClientProvider:
    async def show(url: str) -> None:
        """Have the user open the page of the authorization server."""
        metadata = provider.context.oauth_metadata
        if metadata is not None and server.url.startswith("https://"):
            page(str(metadata.token_endpoint))  # what is granted must not be sent in the clear
        listener.expect(parse_qs(urlsplit(page(url)).query).get("state", [""])[0])
        say({"url": url})

    async def wait() -> AuthorizationCodeResult:
        with _Pasting(listener):
            found = await listener.wait()
        state = listener.state
        return AuthorizationCodeResult(code=found.code, state=state, iss=found.issuer or None)

    wanted = {
        "client_name": "zot",
        "redirect_uris": [listener.uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }
    provider = OAuthClientProvider(
        server.url,
        OAuthClientMetadata.model_validate(wanted),
        _Storage(listener.uri, client_id),
        redirect_handler=show,
        callback_handler=wait,
    )
    return provider


async def _ask(server: McpServer, provider: OAuthClientProvider) -> int:
    """Send a request, for which the provider logs in; return the status of its answer."""
    # What the entry has as a token is what the server has refused, or it would need no login.
    own = {name: value for name, value in server.headers.items() if name.lower() != "authorization"}
    headers = {**own, "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": REVISION}
    async with httpx2.AsyncClient(headers=headers, timeout=HTTP_S, auth=provider) as client:
        if server.type == SSE:
            answer = await client.get(server.url)
        else:
            answer = await client.post(server.url, json=HELLO)
    return answer.status_code


def _login_of(provider: OAuthClientProvider, asked_at: float) -> ServerLogin:
    context = provider.context
    client, granted, metadata = context.client_info, context.current_tokens, context.oauth_metadata
    assert client is not None
    assert granted is not None
    lifetime_s = seconds(granted.expires_in)
    tokens = TokenSet(
        checked(granted.access_token),
        checked(granted.refresh_token or "", may_be_empty=True),
        scope=granted.scope or "",
        obtained_at=asked_at,
        expires_at=None if lifetime_s is None else asked_at + lifetime_s,
    )
    base = context.get_authorization_base_url(context.server_url)
    return ServerLogin(
        client_id=client.client_id,
        client_secret=client.client_secret or "",
        auth_method=client.token_endpoint_auth_method or "none",
        token_url=str(metadata.token_endpoint) if metadata is not None else f"{base}/token",
        revoke_url=str(metadata.revocation_endpoint or "") if metadata is not None else "",
        resource=context.get_resource_url() if context.should_include_resource_param(REVISION) else "",
        tokens=tokens,
        logged_in_at=asked_at,
    )


def _by_hand(reason: str, redirect_uri: str) -> str:
    return (
        f"{' '.join(reason.split())[:200]}. If its authorization server does not register programs, register zot there "
        f"with the redirect address {redirect_uri} and run: zotctl mcp login NAME --client-id ID --port "
        f"{urlsplit(redirect_uri).port}"
    )


class _Pasting:
    """Takes the address to which the browser was sent from the terminal, too: it may run on another machine."""

    def __init__(self, listener: RedirectListener) -> None:
        self._listener = listener
        self._reads = os.isatty(0)

    def __enter__(self) -> None:
        if self._reads:
            asyncio.get_running_loop().add_reader(0, self._take)

    def __exit__(self, *exception: object) -> None:
        if self._reads:
            asyncio.get_running_loop().remove_reader(0)

    def _take(self) -> None:
        typed = os.read(0, PASTED_BYTES).decode(errors="replace").strip()
        if typed:
            status, words = self._listener.take(typed)
            if not status.startswith("200"):
                sys.stderr.write(one_line(words) + "\n")


# --- logout -----------------------------------------------------------------------------------------------------------


def _log_out(server: McpServer, file: ServerLoginFile) -> dict[str, object]:
    """Forget the login, and revoke it if the server has a way."""
    with file.renewing(server.url):  # a renewal that runs would bring it back
        login = file.read(server.url)
        if login is None:
            raise OAuthError(Problem.LOCAL, "there is no login")
        file.remove(server.url)
    if not login.revoke_url:
        return {
            "ok": True,
            "note": "the server has no way to revoke a token; it ends by itself, or in your account there",
        }
    try:
        status = transport.send(revoke_request(login)).status
    except OAuthError as error:
        return {"ok": True, "note": f"the tokens were not revoked: {error}"}
    return {"ok": True, "note": "" if status < 300 else f"the tokens were not revoked: status {status}"}


if __name__ == "__main__":
    sys.exit(main())
