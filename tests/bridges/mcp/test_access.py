"""The login to a server: its token in requests, and what happens when that is refused."""

import pytest

from tests.bridges.protected import protected
from zotd.exthost.mcp import LOGINS
from zotd.oauth.protocol import TokenSet
from zotd.oauth.server_logins import ServerLogin, ServerLoginFile
from zotd.testing.auth_server import CLIENT_SECRET
from zotd.testing.ext_driver import text_of


@pytest.fixture
def servers():
    with protected() as servers:
        yield servers


@pytest.fixture
def logged_in(servers, tmp_path):
    """Stores a login as `zotctl mcp login` does, with a token that the servers accept."""

    def logged_in(**fields):
        servers.auth.access_tokens.add("access-1")
        servers.auth.refresh_tokens.add("refresh-1")
        tokens = TokenSet("access-1", "refresh-1")
        login = ServerLogin(client_id="me", token_url=f"{servers.auth.url}/oauth/token", tokens=tokens, **fields)
        file = ServerLoginFile(tmp_path / LOGINS)
        file.write(servers.url, login)
        return file

    return logged_in


@pytest.mark.parametrize("how", ["none", "client_secret_basic", "client_secret_post"])
def test_a_token_that_is_refused_is_renewed_and_the_request_repeated(start, servers, logged_in, how):
    servers.auth.client_auth = how
    name = "registered" if how != "none" else "me"
    file = logged_in(resource=servers.url, auth_method=how, client_secret=CLIENT_SECRET)
    file.write(servers.url, ServerLogin(**{**_fields(file.read(servers.url)), "client_id": name}))
    driver = start({"url": servers.url})
    servers.auth.access_tokens.clear()
    assert text_of(driver.call_tool("srv__hi")) == "hi"
    assert servers.auth.refreshes == 1
    assert dict(servers.auth.requests)["/oauth/token"]["resource"] == servers.url
    assert file.read(servers.url).tokens.access_token in servers.auth.access_tokens


def _fields(login):
    return {name: getattr(login, name) for name in login.__struct_fields__}


def test_bridges_of_one_login_renew_it_once(start, servers, logged_in):
    logged_in()
    drivers = [start({"url": servers.url}) for _ in range(2)]
    servers.auth.access_tokens.clear()
    calls = [(driver, driver.request("tool_call", name="srv__hi", args={})) for driver in drivers]
    assert [text_of(driver.expect("tool_result", id=call)) for driver, call in calls] == ["hi", "hi"]
    assert servers.auth.refreshes == 1


def test_a_login_that_has_ended_is_named_with_the_command(start, servers, logged_in):
    file = logged_in()
    driver = start({"url": servers.url})
    servers.auth.revoke_all()
    assert driver.call_tool("srv__hi")["is_error"]
    assert driver.end() == 1
    assert driver.log().splitlines()[-1] == (
        "the MCP server srv no longer accepts the login (invalid_grant: the server says invalid_grant); "
        "run: zotctl mcp login srv"
    )
    assert file.read(servers.url).ended.startswith("invalid_grant")
    assert "refresh-1" not in driver.log()


def test_a_token_in_the_headers_of_the_entry_goes_before_the_login(lost, servers, logged_in):
    logged_in()
    code, reason = lost({"url": servers.url, "headers": {"Authorization": "Bearer other"}})
    assert (code, reason.partition(";")[2]) == (1, " its `headers` need a valid token")


def test_a_login_is_used_for_its_own_url_only(lost, servers, logged_in):
    logged_in()
    assert lost({"url": f"{servers.url}/"})[1].endswith("needs a login (HTTP 401); run: zotctl mcp login srv")
