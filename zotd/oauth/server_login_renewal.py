"""Keeps the tokens for one server fresh, for all processes of a home. Blocks: call it in a thread.

In a thread also because a request that is cancelled must not stop it: a server may accept a refresh token only once, so
its answer has to be stored.
"""

import logging
from collections.abc import Callable

import msgspec

from zotd.oauth import protocol
from zotd.oauth.device import Send
from zotd.oauth.lifetime import ends_soon
from zotd.oauth.protocol import OAuthError, Problem
from zotd.oauth.server_logins import ServerLogin, ServerLoginFile, refresh_request

log = logging.getLogger(__name__)


class ServerLoginRenewal:
    """The tokens for one server."""

    def __init__(self, file: ServerLoginFile, url: str, *, send: Send, clock: Callable[[], float]) -> None:
        """`clock` tells the time in seconds since 1970."""
        self._file = file
        self._url = url
        self._send = send
        self._clock = clock

    def is_due(self, login: ServerLogin) -> bool:
        """Whether the token is to be renewed before the next request."""
        return bool(login.tokens.refresh_token) and ends_soon(login.tokens, self._clock())

    def usable(self) -> ServerLogin | None:
        """Return the login with a token that can be used, renewed shortly before its end; None: there is no login.

        Raises:
            OAuthError: it has ended, or cannot be renewed now and the token is no longer valid.
        """
        login = self._read()
        if login is None or not self.is_due(login):
            return login
        try:
            return self._renewed(self.is_due)
        except OAuthError as error:
            ends_at = login.tokens.expires_at
            if error.problem is Problem.ENDED or ends_at is None or self._clock() >= ends_at:
                raise
            log.warning("the login was not renewed: %s", error)
            return login

    def replaced(self, refused: str) -> ServerLogin | None:
        """Return the login with another token than the one that the server has refused. Raises like `usable`."""
        return self._renewed(lambda login: login.tokens.access_token == refused)

    def _read(self) -> ServerLogin | None:
        login = self._file.read(self._url)
        if login is not None and login.ended:
            raise OAuthError(Problem.ENDED, login.ended)
        return login

    def _renewed(self, is_due: Callable[[ServerLogin], bool]) -> ServerLogin | None:
        with self._file.renewing(self._url):
            login = self._read()  # again: another process may have renewed it while this one waited for the lock
            if login is None or not is_due(login):
                return login
            try:
                login = self._refreshed(login)
            except OAuthError as error:
                if error.problem is Problem.ENDED:
                    # Stored, so that no other process asks again. The tokens stay: a logout may still revoke them.
                    self._file.write(self._url, msgspec.structs.replace(login, ended=str(error)))
                raise
            self._file.write(self._url, login)
            return login

    def _refreshed(self, login: ServerLogin) -> ServerLogin:
        if not login.tokens.refresh_token:
            raise OAuthError(Problem.ENDED, "it was refused, and there is no token to renew it with")
        asked_at = self._clock()
        answer = self._send(refresh_request(login))
        tokens = protocol.tokens_of(answer, asked_at=asked_at, before=login.tokens)
        return msgspec.structs.replace(login, tokens=tokens)
