"""`zotctl login`, `logout` and `auth` with a subscription: real processes, and a real authorization server."""

import asyncio
import json
import re
import signal
import sys

import pytest

from zotd.testing.auth_server import AuthServer


@pytest.fixture
async def auth(live):
    async with AuthServer() as server:
        names = ("copilot", "chatgpt", "kimi-code")
        sections = (f'[providers.{name}]\nlogin_url = "{server.url}"\n' for name in names)
        (live.home / "config.toml").write_text("".join(sections))
        await asyncio.to_thread(live.zotctl, "reload")
        yield server


class Running:
    """A command that waits for its user; its process is ended with the test."""

    def __init__(self, live, *args):
        self.process = live.shell.start(*args, start_new_session=True)

    async def until(self, pattern):
        """Read standard error up to a line with this pattern."""
        while True:
            line = await asyncio.to_thread(self.process.stderr.readline)
            assert line, f"no line with {pattern}"
            if found := re.search(pattern, line):
                return found

    async def result(self):
        out, err = await asyncio.to_thread(self.process.communicate, timeout=40)
        return self.process.returncode, out, err

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


async def listed(live, provider):
    _, out, _ = await asyncio.to_thread(live.zotctl, "auth", "--json")
    return next(one for one in json.loads(out)["providers"] if one["provider"] == provider)


async def test_a_code_is_shown_and_the_login_is_listed(live, auth):
    with Running(live, "zotctl", "login", "copilot") as login:
        found = await login.until(r"open (\S+) and enter the code (\S+)$")
        assert found[1] == f"{auth.url}/enter"
        await login.until("waiting for you to log in there; Ctrl-C cancels")
        auth.enter(found[2])
        code, out, err = await login.result()
    assert (code, out) == (0, "logged in to GitHub Copilot as octocat\n")
    one = await listed(live, "copilot")
    assert (one["source"], one["login"]["account"], one["login"]["expires_at"] > 0) == ("login", "octocat", True)
    _, out, _ = await asyncio.to_thread(live.zotctl, "auth")
    assert re.search(
        r"^copilot +login +GITHUB_COPILOT_TOKEN +octocat, renewed at \d{4}-\d\d-\d\d \d\d:\d\d$", out, re.MULTILINE
    )
    assert re.search(r"^chatgpt +none +zotctl login chatgpt \(needs ChatGPT Plus", out, re.MULTILINE)
    secrets = [*auth.access_tokens, *auth.refresh_tokens, *auth.keys]
    assert not any(secret in out + err + live.daemon.log for secret in secrets)


async def test_a_browser_that_is_here_is_opened_and_comes_back(live, auth, tmp_path):
    browser = tmp_path / "browser.py"
    browser.write_text("import sys, urllib.request\nurllib.request.urlopen(sys.argv[1]).read()\n")
    live.shell.env["BROWSER"] = f"{sys.executable} {browser} %s"
    code, out, err = await asyncio.to_thread(live.zotctl, "login", "chatgpt", "--json")
    assert code == 0, err
    assert json.loads(out)["login"]["account"] == "octocat@example.org"
    assert f"log in on this page: {auth.url}/oauth/authorize?" in err
    assert [path for path, _ in auth.requests].count("/oauth/token") == 1


async def test_no_browser_opens_none_and_prints_the_address(live, auth, tmp_path):
    live.shell.env["BROWSER"] = f"touch {tmp_path / 'opened'} %s"
    with Running(live, "zotctl", "login", "chatgpt", "--no-browser") as login:
        await login.until("log in on this page: http")
        await login.until("waiting")
        login.process.send_signal(signal.SIGINT)
        code, out, _ = await login.result()
    assert (code, out) == (130, "")
    assert not (tmp_path / "opened").exists()


async def test_over_ssh_a_code_is_shown_although_the_vendor_prefers_a_browser(live, auth):
    live.shell.env |= {"SSH_CONNECTION": "1 2 3 4", "DISPLAY": ":0"}
    with Running(live, "zotctl", "login", "chatgpt") as login:
        found = await login.until(r"open (\S+)/codex/device and enter the code (\S+)$")
        auth.enter(found[2], "access_denied")
        login.process.send_signal(signal.SIGINT)
        assert (await login.result())[0] == 130


async def test_an_interrupted_login_is_cancelled_in_the_daemon(live, auth):
    with Running(live, "zotctl", "login", "copilot") as login:
        found = await login.until(r"enter the code (\S+)$")
        login.process.send_signal(signal.SIGINT)
        code, out, _ = await login.result()
    assert (code, out) == (130, "")
    auth.enter(found[1])
    assert (await listed(live, "copilot"))["login"] is None


async def test_a_refused_login_says_why(live, auth):
    with Running(live, "zotctl", "login", "kimi-code") as login:
        auth.enter((await login.until(r"enter the code (\S+)$"))[1], "access_denied")
        code, out, err = await login.result()
    assert (code, out) == (1, "")
    assert "zotctl: the login to Kimi Code failed: it was refused (access_denied: the server says access_denied)" in err


async def test_logout_revokes_the_login_or_says_that_it_cannot(live, auth):
    for name, said in (("chatgpt", ""), ("copilot", "GitHub Copilot has no way to revoke a token")):
        with Running(live, "zotctl", "login", name, "--device") as login:
            auth.enter((await login.until(r"enter the code (\S+)$"))[1])
            assert (await login.result())[0] == 0
        code, out, err = await asyncio.to_thread(live.zotctl, "logout", name)
        assert (code, out.startswith("logged out of "), err.startswith(said)) == (0, True, True)
        assert (await listed(live, name))["login"] is None
    assert "/oauth/revoke" in [path for path, _ in auth.requests]


async def test_zot_login_is_the_same_command(live, auth):
    with Running(live, "zotd.cli", "login", "copilot") as login:
        auth.enter((await login.until(r"enter the code (\S+)$"))[1])
        assert (await login.result())[:2] == (0, "logged in to GitHub Copilot as octocat\n")


async def test_the_help_says_what_anthropic_does_not_allow(shell):
    _, out, _ = await asyncio.to_thread(shell.zotctl, "login", "--help")
    assert "Anthropic does not let" in out
    assert "chatgpt (ChatGPT), copilot (GitHub Copilot), kimi-code (Kimi Code)" in out
