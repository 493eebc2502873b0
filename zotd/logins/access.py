"""A login as the headers of model requests (`providers.shared.Access`)."""

import asyncio
from collections.abc import Callable, Mapping

from zotd.core.ports import StorageError
from zotd.core.retry import Failure, ModelError
from zotd.logins.renewal import NotLoggedInError, Renewal
from zotd.logins.vendors import LoginVendor
from zotd.oauth.protocol import OAuthError, Problem
from zotd.store.logins import LoginStore, VendorLogin


class LoginAccess:
    """The login to one vendor; shared by all sessions of this process."""

    def __init__(self, vendor: LoginVendor, title: str, store: LoginStore, renewal: Renewal) -> None:
        """`title`: the vendor's name in messages."""
        self._vendor = vendor
        self._title = title
        self._store = store
        self._renewal = renewal
        self._login: VendorLogin | None = None
        self._stamp: tuple[int, int] | None = None
        """Of the file from which `_login` was read."""
        # One thread at a time: a hundred sessions whose token ends must not occupy a hundred.
        self._renewing = asyncio.Lock()

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of a request; valid after `prepare`."""
        if self._login is None:
            return {}
        found = {**self._vendor.headers, "Authorization": f"Bearer {self._login.current.access_token}"}
        if self._vendor.account_header and self._login.account_id:
            found[self._vendor.account_header] = self._login.account_id
        return found

    @property
    def base_url(self) -> str:
        """Where this account's requests go; empty: to the vendor's usual URL."""
        return self._login.key_url if self._login is not None else ""

    async def prepare(self) -> None:
        """Make `headers` valid for a request; most calls only look at the file's time.

        Raises:
            ModelError: there is no login, or it has ended, or cannot be renewed now.
        """
        async with self._renewing:
            if self._login is None or self._stamp != self._store.stamp or self._renewal.is_due(self._login):
                await self._take(self._renewal.usable)

    async def renew(self, refused: Mapping[str, str]) -> None:
        """Get other headers than these, which the vendor has refused. Raises like `prepare`."""
        async with self._renewing:
            if self.headers == refused:  # another session of this process may have been faster
                token = self._login.current.access_token if self._login is not None else ""
                await self._take(lambda: self._renewal.replaced(token))

    async def _take(self, look: Callable[[], VendorLogin]) -> None:
        stamp = self._store.stamp  # before the file is read: a change in between must be noticed
        try:
            self._login = await asyncio.to_thread(look)
        except NotLoggedInError as error:
            sentence = f"you are not logged in to {self._title}; run: zotctl login {self._vendor.name}"
            raise ModelError(Failure.NO_KEY, sentence) from error
        except StorageError as error:
            raise ModelError(Failure.UNAVAILABLE, str(error)) from error
        except OAuthError as error:
            if error.problem is Problem.UNREACHABLE:
                sentence = f"the login to {self._title} cannot be renewed: {error}; try again later"
                raise ModelError(Failure.UNREACHABLE, sentence) from error
            raise ModelError(Failure.AUTH, ended(self._title, self._vendor.name, str(error))) from error
        self._stamp = stamp


def ended(title: str, vendor: str, reason: str) -> str:
    """The sentence for a login that the vendor no longer accepts."""
    return f"{title} no longer accepts this login ({reason}); run: zotctl login {vendor}"
