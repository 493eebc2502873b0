"""ChatGPT's device flow, which is none of the RFC: a code that the user enters is exchanged like one of a browser."""

import msgspec

from zotd.oauth.device import Send
from zotd.oauth.protocol import (
    DEVICE_S,
    INTERVAL_S,
    SHORTEST_INTERVAL_S,
    DeviceCode,
    HttpRequest,
    OAuthClient,
    OAuthError,
    Problem,
    TokenSet,
    checked,
    exchange_request,
    failure_of,
    refusal_of,
    seconds,
    shown_code,
    tokens_of,
)

PAGE = "/codex/device"
"""Where the user enters the code; on the server of the token endpoint, as `POLL` and `REDIRECT` are."""

POLL = "/api/accounts/deviceauth/token"
REDIRECT = "/deviceauth/callback"

PENDING = frozenset({403, 404})
"""Status of a poll while the user has not entered the code."""


class _Code(msgspec.Struct):
    device_auth_id: str
    user_code: str = ""
    usercode: str = ""
    interval: float | str | None = None


class _Entered(msgspec.Struct):
    authorization_code: str
    code_verifier: str


class ChatGptDevice:
    """A `oauth.device.DeviceDialect`."""

    def begin(self, client: OAuthClient, send: Send) -> DeviceCode:
        """See `DeviceDialect.begin`."""
        answer = send(_json(client, client.device_url, {"client_id": client.client_id}))
        refusal = refusal_of(answer)
        if refusal is not None:
            if answer.status == 404:
                raise OAuthError(Problem.REFUSED, "device codes are not enabled for this account; use a browser")
            raise failure_of(answer.status, refusal)
        try:
            said = msgspec.json.decode(answer.body, type=_Code)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise OAuthError(Problem.UNREACHABLE, "the server sent no device code") from error
        interval_s = seconds(said.interval)
        return DeviceCode(
            checked(said.device_auth_id),
            shown_code(said.user_code or said.usercode),
            _beside(client, PAGE),
            "",
            DEVICE_S,
            max(SHORTEST_INTERVAL_S, INTERVAL_S if interval_s is None else interval_s),
        )

    def poll(self, client: OAuthClient, code: DeviceCode, send: Send, asked_at: float) -> TokenSet | float:
        """See `DeviceDialect.poll`."""
        body = {"device_auth_id": code.device_code, "user_code": code.user_code}
        answer = send(_json(client, _beside(client, POLL), body))
        if answer.status in PENDING:
            return 0.0
        refusal = refusal_of(answer)
        if refusal is not None:
            raise failure_of(answer.status, refusal)
        try:
            entered = msgspec.json.decode(answer.body, type=_Entered)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise OAuthError(Problem.UNREACHABLE, "the server sent no authorization code") from error
        request = exchange_request(
            client,
            code=checked(entered.authorization_code),
            verifier=checked(entered.code_verifier),
            redirect_uri=_beside(client, REDIRECT),
        )
        return tokens_of(send(request), asked_at=asked_at)


def _beside(client: OAuthClient, path: str) -> str:
    scheme, _, rest = client.token_url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}{path}"


def _json(client: OAuthClient, url: str, body: dict[str, str]) -> HttpRequest:
    headers = {**client.headers, "Accept": "application/json", "Content-Type": "application/json"}
    return HttpRequest("POST", url, headers, msgspec.json.encode(body))
