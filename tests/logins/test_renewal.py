"""Tokens are renewed once, before they end or when they are refused, and are never lost."""

import asyncio
import json
import subprocess
import sys
import textwrap

import pytest

from tests.store.test_logins import ReadOnly
from zotd import private_file
from zotd.core.ports import StorageError
from zotd.logins.renewal import NotLoggedInError
from zotd.oauth.protocol import OAuthError, Problem
from zotd.store.logins import FILE


async def run(look, *args):
    """Run what blocks; the server is in this loop."""
    return await asyncio.to_thread(look, *args)


async def test_a_token_that_is_good_costs_no_request(server, renewal_of, logged_in):
    login = logged_in("kimi-code")
    assert await run(renewal_of("kimi-code").usable) == login
    assert server.requests == []


async def test_a_token_is_renewed_before_it_ends_and_stored_before_it_is_used(
    server, store, clock, renewal_of, logged_in
):
    logged_in("kimi-code")
    clock.ahead_s = 3600 - 60
    login = await run(renewal_of("kimi-code").usable)
    assert login.tokens.access_token in server.access_tokens - {"access-0"}
    assert store.read("kimi-code") == login
    assert server.refreshes == 1
    assert server.requests[0][1]["client_id"] == "17e5f671-d194-4dfb-9706-5516cb48c098"
    assert (await run(renewal_of("kimi-code").usable), server.refreshes) == (login, 1)


async def test_a_refused_token_is_renewed_though_the_clock_says_that_it_is_good(server, renewal_of, logged_in):
    logged_in("kimi-code")
    renewal = renewal_of("kimi-code")
    login = await run(renewal.replaced, "access-0")
    assert login.tokens.access_token != "access-0"
    assert (await run(renewal.replaced, "access-0"), server.refreshes) == (login, 1)


@pytest.mark.parametrize("ahead_s", [-86_400.0, 86_400.0])
async def test_a_clock_that_is_a_day_off_costs_at_most_one_renewal(server, clock, renewal_of, logged_in, ahead_s):
    clock.ahead_s = ahead_s
    logged_in("kimi-code")
    renewal = renewal_of("kimi-code")
    for _ in range(3):
        await run(renewal.usable)
    assert server.refreshes == 0
    clock.ahead_s = 0.0  # corrected: a token of tomorrow is used until it is refused, one of yesterday is renewed
    for _ in range(3):
        await run(renewal.usable)
    assert server.refreshes == (1 if ahead_s < 0 else 0)


async def test_a_grant_that_was_revoked_is_told_once_and_then_without_a_request(server, store, renewal_of, logged_in):
    logged_in("kimi-code")
    server.revoke_all()
    for _ in range(2):
        with pytest.raises(OAuthError, match="invalid_grant") as caught:
            await run(renewal_of("kimi-code").replaced, "access-0")
        assert caught.value.problem is Problem.ENDED
    assert server.refreshes == 1
    assert store.listed()["kimi-code"].ended.startswith("invalid_grant")


async def test_a_server_that_is_away_leaves_the_token_in_use_until_its_end(server, clock, renewal_of, logged_in):
    login = logged_in("kimi-code")
    server.status = 503
    clock.ahead_s = 3600 - 60
    assert await run(renewal_of("kimi-code").usable) == login
    clock.ahead_s = 3601
    with pytest.raises(OAuthError) as caught:
        await run(renewal_of("kimi-code").usable)
    assert caught.value.problem is Problem.UNREACHABLE
    server.status = 200
    assert (await run(renewal_of("kimi-code").usable)).tokens.access_token in server.access_tokens


async def test_a_machine_without_a_network_keeps_the_login(server, store, clock, renewal_of, logged_in):
    login = logged_in("kimi-code")
    await server.__aexit__(None, None, None)
    clock.ahead_s = 4000
    with pytest.raises(OAuthError, match="cannot be reached"):
        await run(renewal_of("kimi-code").usable)
    assert store.read("kimi-code") == login


async def test_nothing_is_requested_if_new_tokens_could_not_be_stored(
    server, store, tmp_path, clock, renewal_of, logged_in
):
    login = logged_in("kimi-code")
    clock.ahead_s = 4000
    with private_file.locked(tmp_path / FILE), store.renewing("kimi-code"):
        pass  # the locks exist
    with ReadOnly(tmp_path), pytest.raises(StorageError, match="cannot be written"):
        await run(renewal_of("kimi-code").usable)
    assert server.refreshes == 0
    assert store.read("kimi-code") == login


async def test_without_a_login_there_is_nothing_to_renew(renewal_of):
    with pytest.raises(NotLoggedInError):
        await run(renewal_of("kimi-code").usable)


async def test_a_key_is_exchanged_and_renewed_without_touching_the_grant(server, store, clock, renewal_of, logged_in):
    logged_in("copilot", lifetime_s=10**6)
    server.lifetime_s = 1800.0
    server.key_url = "https://api.business.githubcopilot.com"
    first = await run(renewal_of("copilot").usable)
    assert first.key.access_token in server.keys
    assert first.key_url == "https://api.business.githubcopilot.com"
    clock.ahead_s = 1790
    second = await run(renewal_of("copilot").usable)
    assert second.key != first.key
    assert second.tokens == first.tokens
    assert (server.exchanges, server.refreshes) == (2, 0)
    assert store.read("copilot") == second


@pytest.mark.parametrize(
    "url", ["http://api.githubcopilot.com", "https://evil.example", "https://githubcopilot.com.evil.example",
            "https://evil@x.githubcopilot.com", "https://xgithubcopilot.com"],
)  # fmt: skip
async def test_a_key_does_not_lead_requests_to_a_foreign_host(server, renewal_of, logged_in, url):
    server.key_url = url
    logged_in("copilot")
    assert (await run(renewal_of("copilot").usable)).key_url == ""


async def test_an_account_without_a_subscription_has_no_key(server, renewal_of, logged_in):
    server.subscribed = False
    logged_in("copilot")
    with pytest.raises(OAuthError, match="no access to Copilot"):
        await run(renewal_of("copilot").usable)


PROGRAM = textwrap.dedent(
    """
    import json, pathlib, sys
    from zotd.logins.desk import send
    from zotd.logins.renewal import Renewal
    from zotd.logins.vendors import LOGINS
    from zotd.store.logins import LoginStore
    import time

    home, url, name = sys.argv[1:]
    store = LoginStore(pathlib.Path(home), lambda: None, prefers_vault=lambda: False)
    renewal = Renewal(LOGINS[name].at(url, None), store, send=send, clock=time.time)
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(renewal.usable().tokens.access_token), flush=True)
    """
)


class Renewing:
    """A process that renews when it is told to."""

    def __init__(self, home, url, name):
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(home), url, name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdin
        assert self.process.stdout
        self._in, self._out = self.process.stdin, self.process.stdout
        assert self._out.readline() == "ready\n"

    def go(self):
        self._in.write("\n")
        self._in.flush()

    def token(self):
        return json.loads(self._out.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


async def test_processes_that_renew_at_once_make_one_request(server, tmp_path, logged_in):
    logged_in("kimi-code", lifetime_s=0.0)
    server.hold = asyncio.Event()
    made = [await run(Renewing, tmp_path, server.url, "kimi-code") for _ in range(3)]
    with made[0], made[1], made[2]:
        for one in made:
            one.go()
        await server.asked("/api/oauth/token")
        server.hold.set()
        tokens = {await run(one.token) for one in made}
    assert len(tokens) == 1
    assert tokens < server.access_tokens
    assert server.refreshes == 1


async def test_a_process_that_is_killed_while_it_renews_does_not_hold_up_others(
    server, store, tmp_path, logged_in, renewal_of
):
    logged_in("kimi-code", lifetime_s=0.0)
    server.hold = asyncio.Event()
    with await run(Renewing, tmp_path, server.url, "kimi-code") as one:
        one.go()
        await server.asked("/api/oauth/token")
        one.process.kill()
        await server.abandoned.wait()
        server.hold.set()
        login = await run(renewal_of("kimi-code").usable)
    assert store.read("kimi-code") == login
    assert server.refreshes == 2
