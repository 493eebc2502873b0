"""The device flow (RFC 8628): the user enters a code on a page that any of their devices can open."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from zotd.oauth.protocol import (
    INTERVAL_S,
    DeviceCode,
    HttpAnswer,
    HttpRequest,
    OAuthClient,
    OAuthError,
    Problem,
    TokenSet,
    device_code_of,
    device_request,
    failure_of,
    poll_request,
    refusal_of,
    tokens_of,
)

LONGEST_INTERVAL_S = 60.0
"""Longest pause between two polls, however often the server asks for a longer one."""

Send = Callable[[HttpRequest], HttpAnswer]
"""Sends a request; blocks. See `transport.send`."""


class DeviceDialect(Protocol):
    """The requests of a device flow. A server that follows the RFC needs `Rfc8628`."""

    def begin(self, client: OAuthClient, send: Send) -> DeviceCode:
        """Request a code. Blocks; raises OAuthError."""
        ...

    def poll(self, client: OAuthClient, code: DeviceCode, send: Send, asked_at: float) -> TokenSet | float:
        """Ask once whether the user is done: the tokens, or the seconds by which to poll more slowly. Blocks; raises OAuthError."""
        ...


class Rfc8628:
    """The device flow as the RFC has it."""

    def begin(self, client: OAuthClient, send: Send) -> DeviceCode:
        """See `DeviceDialect.begin`."""
        return device_code_of(send(device_request(client)))

    def poll(self, client: OAuthClient, code: DeviceCode, send: Send, asked_at: float) -> TokenSet | float:
        """See `DeviceDialect.poll`."""
        answer = send(poll_request(client, code.device_code))
        refusal = refusal_of(answer)
        if refusal is None:
            return tokens_of(answer, asked_at=asked_at)
        if refusal.code == "authorization_pending":
            return 0.0
        if refusal.code == "slow_down":
            return INTERVAL_S
        raise failure_of(answer.status, refusal)


class DeviceLogin:
    """One login by device flow."""

    def __init__(
        self,
        client: OAuthClient,
        send: Send,
        *,
        clock: Callable[[], float],
        dialect: DeviceDialect | None = None,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`clock` tells the time in seconds since 1970; `pause` waits between polls."""
        self._client = client
        self._send = send
        self._clock = clock
        self._dialect = dialect or Rfc8628()
        self._pause = pause

    async def begin(self) -> DeviceCode:
        """Request a code for the user. Raises OAuthError."""
        return await asyncio.to_thread(self._dialect.begin, self._client, self._send)

    async def finish(self, code: DeviceCode) -> TokenSet:
        """Wait until the user has entered the code, at most for its lifetime.

        Raises:
            OAuthError: the user refused, the code expired, or the server refuses to go on.
        """
        interval_s, waited_s = code.interval_s, 0.0
        # Counted in pauses, not by a clock: a machine that slept does not know whether the code has expired; the server does.
        while waited_s <= code.lifetime_s:
            await self._pause(interval_s)
            waited_s += interval_s
            try:
                found = await asyncio.to_thread(self._dialect.poll, self._client, code, self._send, self._clock())
            except OAuthError as error:
                if error.problem is not Problem.UNREACHABLE:
                    raise
                found = interval_s  # RFC 8628, 3.5: back off when there is no answer
            if isinstance(found, TokenSet):
                return found
            interval_s = min(interval_s + found, LONGEST_INTERVAL_S)
        raise OAuthError(Problem.EXPIRED, "the code was not entered in time")
