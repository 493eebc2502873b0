"""A login as the headers of requests."""

import asyncio

import pytest

from zotd.core.retry import Failure, ModelError
from zotd.logins.access import LoginAccess


@pytest.fixture
def access_of(store, vendor_of, renewal_of):
    return lambda name: LoginAccess(vendor_of(name), "The Vendor", store, renewal_of(name))


async def test_requests_name_the_account_and_the_program(access_of, logged_in):
    logged_in("chatgpt")
    access = access_of("chatgpt")
    assert access.headers == {}
    await access.prepare()
    assert access.headers["Authorization"] == "Bearer access-0"
    assert access.headers["ChatGPT-Account-Id"] == "acc-1"
    assert access.headers["originator"] == "zot"
    assert access.headers["User-Agent"].startswith("zot/")


async def test_a_hundred_runs_renew_once(server, access_of, logged_in):
    logged_in("kimi-code")
    access = access_of("kimi-code")
    await access.prepare()
    refused = access.headers
    async with asyncio.TaskGroup() as group:
        for _ in range(100):
            group.create_task(access.renew(refused))
    assert server.refreshes == 1
    assert access.headers != refused


async def test_a_cancelled_run_does_not_lose_the_renewed_token(server, store, access_of, logged_in):
    logged_in("kimi-code")
    access = access_of("kimi-code")
    await access.prepare()
    server.hold = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        run = group.create_task(access.renew(access.headers))
        await server.asked("/api/oauth/token")
        run.cancel()
    server.hold.set()
    await access.renew(
        access.headers
    )  # another run: waits for the renewal that still goes on, and gets what it has stored
    assert server.refreshes == 1
    assert access.headers["Authorization"] == f"Bearer {store.read('kimi-code').tokens.access_token}"
    assert store.read("kimi-code").tokens.refresh_token in server.refresh_tokens


async def test_another_login_is_used_from_the_next_request_on(store, access_of, logged_in):
    login = logged_in("kimi-code")
    access = access_of("kimi-code")
    await access.prepare()
    store.remove("kimi-code")
    with pytest.raises(ModelError, match="not logged in to The Vendor; run: zotctl login kimi-code") as caught:
        await access.prepare()
    assert caught.value.failure is Failure.NO_KEY
    store.write("kimi-code", login)
    await access.prepare()
    assert access.headers["Authorization"] == "Bearer access-0"


async def test_a_login_that_has_ended_is_one_sentence(server, access_of, logged_in):
    logged_in("kimi-code")
    access = access_of("kimi-code")
    await access.prepare()
    server.revoke_all()
    sentence = r"^The Vendor no longer accepts this login \(invalid_grant: .*\); run: zotctl login kimi-code$"
    for attempt in (access.renew(access.headers), access.prepare()):
        with pytest.raises(ModelError, match=sentence) as caught:
            await attempt
        assert caught.value.failure is Failure.AUTH
    assert server.refreshes == 1


async def test_a_server_that_is_away_may_be_asked_again_by_the_run(server, access_of, logged_in, clock):
    logged_in("kimi-code")
    server.status = 502
    clock.ahead_s = 4000
    with pytest.raises(ModelError, match="cannot be renewed") as caught:
        await access_of("kimi-code").prepare()
    assert caught.value.failure is Failure.UNREACHABLE
