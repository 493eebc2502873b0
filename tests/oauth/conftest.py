import pytest

from zotd.oauth import transport
from zotd.oauth.protocol import OAuthClient
from zotd.testing.auth_server import AuthServer


@pytest.fixture
async def server():
    async with AuthServer() as serving:
        yield serving


@pytest.fixture
def client(server):
    """A client that is registered with the server."""
    return OAuthClient(
        client_id="me",
        token_url=f"{server.url}/oauth/token",
        authorize_url=f"{server.url}/oauth/authorize",
        device_url=f"{server.url}/login/device/code",
    )


@pytest.fixture
def send():
    return transport.send
