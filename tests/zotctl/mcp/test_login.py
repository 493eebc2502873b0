"""`zotctl mcp login` and `logout`, against a real MCP server and an authorization server."""

import json
import stat

import pytest

from tests.bridges.protected import log_in, protected, write_entry


@pytest.fixture
def servers():
    with protected() as servers:
        yield servers


@pytest.fixture
def home(shell, servers):
    home = shell.home / "zot"
    write_entry(home, servers.url)
    return home


def test_a_login_opens_the_server_and_a_logout_closes_it(shell, home, servers):
    needed = "zotctl: the MCP server srv needs a login (HTTP 401); run: zotctl mcp login srv\n"
    assert shell.zotctl("mcp", "test", "srv")[2].startswith(needed)
    code, out, _ = log_in(shell)
    assert (code, out) == (0, "logged in to srv at 127.0.0.1\nit starts with the next session\n")
    assert stat.S_IMODE((home / "mcp-logins.json").stat().st_mode) == 0o600
    assert shell.zotctl("mcp", "test", "srv")[:2][0] == 0
    assert shell.zotctl("mcp", "logout", "srv")[:2] == (0, "logged out of srv\n")
    assert servers.auth.refresh_tokens == set()
    assert json.loads((home / "mcp-logins.json").read_text()) == {}
    assert shell.zotctl("mcp", "test", "srv")[2].startswith(needed)
    assert shell.zotctl("mcp", "logout", "srv")[2] == "zotctl: the logout failed: there is no login\n"


def test_the_authorization_server_is_told_what_the_token_is_for_and_gets_a_challenge(shell, home, servers):
    log_in(shell)
    asked = dict(servers.auth.requests)
    assert asked["/oauth/authorize"]["resource"] == asked["/oauth/token"]["resource"] == servers.url
    assert asked["/oauth/authorize"]["code_challenge_method"] == "S256"


def test_a_refused_login_says_so_and_stores_nothing(shell, home, servers):
    servers.auth.consent = "deny"
    code, out, err = log_in(shell)
    assert (code, out) == (1, "")
    assert err.splitlines()[-1].startswith("zotctl: the login failed: it was refused (access_denied")
    assert not (home / "mcp-logins.json").exists()


def test_a_vendor_that_does_not_register_programs_needs_a_client_id(shell, home, servers):
    servers.auth.registers = False
    code, _, err = log_in(shell)
    assert code == 1
    assert "and run: zotctl mcp login NAME --client-id ID --port " in err
    assert log_in(shell, "--client-id", "mine")[0] == 0
    assert dict(servers.auth.requests)["/oauth/token"]["client_id"] == "mine"


def test_a_server_without_a_login_is_told_apart(shell, home):
    write_entry(home, "http://127.0.0.1:1/mcp")
    assert log_in(shell)[2].startswith("zotctl: the login failed: ")
    (home / "mcp.json").write_text('{"mcpServers": {"srv": {"command": "x"}}}')
    assert log_in(shell)[2] == "zotctl: the MCP server srv is started by a command, and has no login here\n"


def test_a_running_daemon_names_the_command_and_starts_the_server_after_the_login(live, servers):
    write_entry(live.home, servers.url)
    live.session()
    # The reason is there until it is started again.
    while "needs a login (HTTP 401); run: zotctl mcp login srv" not in live.zotctl("ext", "list")[1]:
        live.until("mcp-srv", "restarting", "parked")
    code, out, _ = log_in(live.shell)
    assert (code, out.splitlines()[1]) == (0, "it has been started again")
    assert live.zotctl("mcp", "list")[1].splitlines()[1].split()[:3] == ["srv", "ready", "1"]
