"""What authorization servers have granted for servers that a user reaches by their URL, and how it is renewed and ended.

Unlike a vendor's, these clients are registered at the login, and some get a secret then (RFC 7591).
"""

import base64
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlencode

import msgspec

from zotd import logs, private_file
from zotd.oauth.protocol import FORM, HttpRequest, OAuthError, Problem, TokenSet

RENEWING_S = 75.0
"""Longest wait for another process that renews the same tokens: its lock and a request."""


class ServerLogin(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A login to one server."""

    client_id: str
    """How this program is registered with the authorization server."""
    client_secret: str = ""
    auth_method: str = "none"
    """How the secret is sent: `client_secret_basic` or `client_secret_post`; else it is not."""
    token_url: str
    revoke_url: str = ""
    """Empty: tokens cannot be revoked."""
    resource: str = ""
    """What the tokens are for (RFC 8707); empty: the server is not told."""
    tokens: TokenSet
    logged_in_at: float = 0.0
    ended: str = ""
    """Why the server no longer accepts the login; empty: it does."""

    @property
    def secrets(self) -> list[str]:
        """All that must not appear in a log."""
        found = (self.client_secret, self.tokens.access_token, self.tokens.refresh_token, self.tokens.id_token)
        return [one for one in found if one]


def refresh_request(login: ServerLogin) -> HttpRequest:
    """Return the request for a new access token."""
    params = {"grant_type": "refresh_token", "refresh_token": login.tokens.refresh_token}
    return _form(login, login.token_url, {**params, **({"resource": login.resource} if login.resource else {})})


def revoke_request(login: ServerLogin) -> HttpRequest:
    """Return the request that ends the login: of its refresh token if there is one (RFC 7009)."""
    token, kind = login.tokens.refresh_token, "refresh_token"
    if not token:
        token, kind = login.tokens.access_token, "access_token"
    return _form(login, login.revoke_url, {"token": token, "token_type_hint": kind})


def _form(login: ServerLogin, url: str, params: Mapping[str, str]) -> HttpRequest:
    headers = {"Accept": "application/json", "Content-Type": FORM}
    fields = {"client_id": login.client_id, **params}
    match login.auth_method:
        case "client_secret_basic":
            pair = f"{quote(login.client_id, safe='')}:{quote(login.client_secret, safe='')}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        case "client_secret_post":
            fields["client_secret"] = login.client_secret
        case _:
            pass  # a public client
    return HttpRequest("POST", url, headers, urlencode(fields).encode())


class ServerLoginFile:
    """The logins of one home, by the URL of their server. All methods but `stamp` block.

    Raises:
        OAuthError: `LOCAL`, from every method: the file cannot be read, is open to other users, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def stamp(self) -> tuple[int, int] | None:
        """What changes when the file does; None: there is none. Takes microseconds."""
        return private_file.stamp(self._path)

    def read(self, url: str) -> ServerLogin | None:
        """Return the login for a server; None if there is none."""
        login = self._read().get(url)
        for secret in login.secrets if login is not None else ():
            logs.hide(secret)
        return login

    def write(self, url: str, login: ServerLogin) -> None:
        """Store a login: after a crash, the file has this one or the one before."""
        for secret in login.secrets:
            logs.hide(secret)
        with self._changing():
            self._replace({**self._read(), url: login})

    def remove(self, url: str) -> bool:
        """Remove a login; return False if there was none."""
        if self.stamp is None:
            return False
        with self._changing():
            found = dict(self._read())
            if found.pop(url, None) is None:
                return False
            self._replace(found)
        return True

    @contextmanager
    def renewing(self, url: str) -> Iterator[None]:
        """Be the only one of all processes and threads that renews this login: a server may accept a token once."""
        name = f"{self._path.name}.{hashlib.sha256(url.encode()).hexdigest()[:16]}"
        with self._named_errors(), private_file.locked(self._path.with_name(name), within_s=RENEWING_S):
            yield

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._named_errors(), private_file.locked(self._path):
            yield

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OAuthError(Problem.LOCAL, f"{self._path}: {(error.strerror or str(error)).lower()}") from error

    def _read(self) -> Mapping[str, ServerLogin]:
        try:
            with open(self._path, "rb", opener=_unfollowed) as file:
                mode = os.fstat(file.fileno()).st_mode
                content = file.read()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise OAuthError(Problem.LOCAL, f"{self._path} cannot be read: {error.strerror}") from error
        if stat.S_IMODE(mode) & 0o077:
            raise OAuthError(Problem.LOCAL, f"{self._path} is open to other users; run: chmod 600 {self._path}")
        try:
            return msgspec.json.decode(content, type=dict[str, ServerLogin])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            sentence = f"{self._path} is damaged ({error}); delete it and log in again"
            raise OAuthError(Problem.LOCAL, sentence) from error

    def _replace(self, logins: Mapping[str, ServerLogin]) -> None:
        private_file.write(self._path, msgspec.json.format(msgspec.json.encode(logins)) + b"\n")


def _unfollowed(path: str, flags: int) -> int:
    """Opens no pipe that waits for a writer, and no file that another name leads to."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
