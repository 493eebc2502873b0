"""`zotctl mcp login` against an authorization server that others wrote."""

import contextlib
import json

import pytest

from tests.bridges.protected import log_in, protected, write_entry
from tests.npm.packages import INSTALL_S, installed
from tests.zotctl.mcp.published_authorization import Person, PublishedAuthorization
from zotd.testing.live_daemon import free_port

pytestmark = pytest.mark.timeout(INSTALL_S + 60)

GIVEN = "given-beforehand"


@pytest.fixture(scope="session")
def modules(request):
    """The directory with the package."""
    return installed(request.config)


@pytest.fixture
def serve(modules, shell):
    """`serve(lifetime_s=1)`: both servers, and the entry of one in our `mcp.json`."""
    with contextlib.ExitStack() as stack:

        def serve(**options):
            servers = stack.enter_context(protected(PublishedAuthorization(modules, **options)))
            write_entry(shell.home / "zot", servers.url)
            return servers

        yield serve


def stored(shell, servers):
    """What is kept of the login."""
    logins = json.loads((shell.home / "zot" / "mcp-logins.json").read_text())
    return logins[servers.url]


def connects(shell):
    """Whether `zotctl mcp test` reaches the server, and what it says."""
    code, out, err = shell.zotctl("mcp", "test", "srv")
    return code == 0, out + err


def test_a_login_finds_the_server_registers_zot_and_opens_the_mcp_server(serve, shell):
    servers, person = serve(), Person()
    assert "needs a login (HTTP 401); run: zotctl mcp login srv" in connects(shell)[1]
    code, out, err = log_in(shell, visit=person.visit)
    assert (code, person.seen) == (0, ["login", "consent"]), err
    assert out.startswith("logged in to srv at 127.0.0.1")
    assert connects(shell)[0]
    assert stored(shell, servers)["client_id"] != GIVEN


def test_a_token_is_renewed_when_it_has_expired_and_the_server_is_not_bothered_with_the_old_one(serve, shell):
    servers = serve(lifetime_s=1)
    assert log_in(shell, visit=Person().visit)[0] == 0
    first = stored(shell, servers)["tokens"]
    while stored(shell, servers)["tokens"]["access_token"] == first["access_token"]:
        is_connected, said = connects(shell)
        assert is_connected, said
    assert stored(shell, servers)["tokens"]["refresh_token"] != first["refresh_token"]
    assert not servers.auth.accepts(first["access_token"])


def test_a_person_who_does_not_consent_is_what_the_login_says_and_nothing_is_stored(serve, shell):
    serve()
    person = Person(consents=False)
    code, out, err = log_in(shell, visit=person.visit)
    assert (code, out, person.seen) == (1, "", ["login", "consent"])
    assert err.splitlines()[-1].startswith("zotctl: the login failed: it was refused (access_denied")
    assert not (shell.home / "zot" / "mcp-logins.json").exists()


def test_a_login_that_was_revoked_says_that_it_is_needed_again(serve, shell):
    servers = serve()
    assert log_in(shell, visit=Person().visit)[0] == 0
    login = stored(shell, servers)
    servers.auth.revoke(login["tokens"]["refresh_token"], login["client_id"])
    is_connected, said = connects(shell)
    assert not is_connected
    assert "no longer accepts the login (invalid_grant" in said
    assert "run: zotctl mcp login srv" in said
    assert log_in(shell, visit=Person().visit)[0] == 0
    assert connects(shell)[0]


def test_a_server_that_registers_nobody_takes_a_client_id_that_was_given_beforehand(serve, shell):
    port = free_port()
    client = {
        "client_id": GIVEN,
        "token_endpoint_auth_method": "none",
        "application_type": "native",
        "grant_types": ["authorization_code", "refresh_token"],
        "redirect_uris": [f"http://127.0.0.1:{port}/callback"],
    }
    servers = serve(registers=False, clients=[client])
    refused = log_in(shell, "--port", str(port), visit=Person().visit)
    assert refused[0] == 1
    assert "and run: zotctl mcp login NAME --client-id ID --port " in refused[2]
    code, _, err = log_in(shell, "--client-id", GIVEN, "--port", str(port), visit=Person().visit)
    assert code == 0, err
    assert stored(shell, servers)["client_id"] == GIVEN
    assert connects(shell)[0]
