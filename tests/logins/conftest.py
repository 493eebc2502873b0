import time

import pytest

from zotd.logins.desk import send
from zotd.logins.renewal import Renewal
from zotd.logins.vendors import LOGINS
from zotd.oauth.protocol import TokenSet
from zotd.store.logins import LoginStore, VendorLogin
from zotd.testing.auth_server import AuthServer


@pytest.fixture
async def server():
    async with AuthServer() as serving:
        yield serving


@pytest.fixture
def store(tmp_path):
    return LoginStore(tmp_path, lambda: None, prefers_vault=lambda: False)


class Clock:
    """A clock that a test sets forward and back."""

    def __init__(self):
        self.ahead_s = 0.0

    def __call__(self):
        return time.time() + self.ahead_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def vendor_of(server):
    """`vendor_of(name)`: a vendor whose servers are the test's."""
    return lambda name: LOGINS[name].at(server.url, None)


@pytest.fixture
def renewal_of(store, clock, vendor_of):
    """`renewal_of(name)`: what keeps its tokens fresh."""
    return lambda name: Renewal(vendor_of(name), store, send=send, clock=clock)


@pytest.fixture
def logged_in(server, store, clock):
    """`logged_in(name)`: store a login that the server has granted."""

    def make(name, *, lifetime_s=3600.0):
        server.access_tokens.add("access-0")
        server.refresh_tokens.add("refresh-0")
        now = clock()
        tokens = TokenSet("access-0", refresh_token="refresh-0", obtained_at=now, expires_at=now + lifetime_s)
        login = VendorLogin(account="me", account_id="acc-1", logged_in_at=now, tokens=tokens)
        store.write(name, login)
        return login

    return make
