"""Push messages: browsers without a connection are told when a session needs somebody and nobody looks."""

import json
from contextlib import AsyncExitStack

import pytest

from tests.e2e.conftest import House
from tests.e2e.timed_site import Site, ended, timer_of
from zotd.push.subscriptions import MAX_SUBSCRIPTIONS
from zotd.testing.live_daemon import place, serving
from zotd.testing.push_server import PushRefusal, PushServer
from zotd.testing.script import CallPart, Refusal, calls, text
from zotd.wire.content import Tokens

SECRET = "hunter2-in-the-name"


@pytest.fixture
async def service():
    async with PushServer() as service:
        yield service
    assert service.faults == []


@pytest.fixture
async def house_after(tmp_path, service, monkeypatch):
    """`await house_after(s)`: a daemon that tells of runs of so many seconds; the next one in the same home follows it."""
    async with AsyncExitStack() as stack:
        home = place(tmp_path).home
        home.mkdir(mode=0o700)
        monkeypatch.setenv("HOME", place(tmp_path).env["HOME"])
        (home / "config.toml").write_text(f"[push]\nservices = [{json.dumps(service.url)}]\n")

        async def start(seconds=0):
            await stack.aclose()
            return House(
                stack, await stack.enter_async_context(serving(tmp_path, {"ZOT_LIMITS_ATTENTION_S": str(seconds)}))
            )

        yield start


async def subscribed(client, service, name="Phone"):
    browser = service.browser()
    fields = {"endpoint": browser.endpoint, "public": browser.public, "auth": browser.auth, "name": name}
    return browser, await client.ask("push.subscribe", **fields)


async def names(client):
    return [one["name"] for one in (await client.ask("push.list"))["browsers"]]


async def test_a_browser_is_told_of_a_call_that_waits_and_of_the_end_of_a_run(house_after, service, model):
    house = await house_after()
    client = await house.connect(role="admin")
    browser, _ = await subscribed(client, service)
    key = (await client.ask("push.key"))["key"]
    server = await model(calls(CallPart("bash", {"command": "true"})), text("done"))
    talk = await house.create("openai", server, client, mode="ask", name=SECRET)
    await talk.ask("prompt", message="go")
    asked = (await talk.until("approval_requested"))[-1]
    (waits,) = await service.arrived(1)
    said = {"reason": "needs_you", "text": f"{SECRET}: bash waits for your decision", "session": talk.id}
    assert (waits.browser, waits.content, waits.urgency) == (browser, said, "high")
    await talk.ask("approve", approval=asked["approval"], args_digest=asked["args_digest"], decision="allow")
    _, ended = await service.arrived(2)
    assert (ended.content["reason"], ended.urgency) == ("done", "normal")
    assert waits.sender == ended.sender == key
    # What the push service sees tells neither what is said nor how long it is, and a newer message replaces an older one.
    assert SECRET.encode() not in waits.body + ended.body
    assert len(waits.body) == len(ended.body)
    assert waits.topic == ended.topic
    assert talk.id not in waits.topic


async def test_nobody_is_told_while_a_client_has_the_focus_or_of_a_short_run(house_after, service, model):
    house = await house_after()
    client = await house.connect(role="admin")
    await subscribed(client, service)
    talk = await house.create("openai", await model(*[text("done")] * 3), client, name="Watched")
    other = await house.create("openai", await model(text("done")), client, name="Alone")
    await talk.ask("presence.update", focused=True)
    await talk.run()
    await talk.ask("presence.update", focused=False)
    await talk.run()
    await service.arrived(1)
    await other.run()
    messages = await service.arrived(2)
    assert [message.content["session"] for message in messages] == [talk.id, other.id]

    house = await house_after(600)
    client = await house.connect(role="admin")
    talk = await house.create("openai", await model(text("quick"), Refusal(400, "no")), client, name="Quick")
    await talk.run()
    await talk.run()
    asks = await house.create("openai", await model(calls(CallPart("bash", {"command": "true"}))), client, mode="ask")
    await asks.ask("prompt", message="go")
    assert (await service.arrived(3))[-1].content["session"] == asks.id
    await asks.ask("abort")


async def test_a_subscription_that_has_ended_is_removed(house_after, service, model):
    house = await house_after()
    client = await house.connect(role="admin")
    ended, _ = await subscribed(client, service, "Old phone")
    await subscribed(client, service, "New phone")
    service.end(ended)
    talk = await house.create("openai", await model(text("done"), text("done")), client)
    for count in (1, 2):
        await talk.run()
        await service.arrived(count)
    await service.asked(3)  # the old one once, the new one twice
    assert await names(client) == ["New phone"]


async def test_a_push_service_in_trouble_is_asked_three_times(house_after, service, model):
    house = await house_after()
    client = await house.connect(role="admin")
    await subscribed(client, service)
    talk = await house.create("openai", await model(*[text("done")] * 3), client)
    service.refusals.extend([PushRefusal(503, "0"), PushRefusal(429, "0")])
    await talk.run()
    await service.arrived(1)
    assert service.requests == 3
    service.refusals.extend([PushRefusal(500, "0")] * 3)
    await talk.run()
    await service.asked(6)
    await talk.run()
    assert len(await service.arrived(2)) == 2
    assert service.requests == 7
    assert await names(client) == ["Phone"]


async def test_subscriptions_survive_a_restart_and_are_listed_and_removed(house_after, service, model):
    house = await house_after()
    client = await house.connect(role="admin")
    browser, first = await subscribed(client, service)
    key = await client.ask("push.key")
    # A browser that subscribes again keeps its place.
    fields = {"endpoint": browser.endpoint, "public": browser.public, "auth": browser.auth}
    assert (await client.ask("push.subscribe", name="Same phone", **fields))["id"] == first["id"]
    file = house.place.home / "push.json"
    assert file.stat().st_mode & 0o777 == 0o600

    house = await house_after()
    client = await house.connect(role="admin")
    assert await client.ask("push.key") == key
    assert await names(client) == ["Same phone"]
    talk = await house.create("openai", await model(text("done")), client)
    await talk.run()
    await service.arrived(1)
    await client.ask("push.remove", browser=first["id"])
    assert await names(client) == []
    assert await client.refused("push.remove", browser=first["id"]) == "not_found"


async def test_the_daemon_asks_only_known_push_services(house_after, service):
    house = await house_after()
    client = await house.connect(role="admin")
    browser = service.browser()
    keys = {"public": browser.public, "auth": browser.auth}
    for endpoint in (
        "https://127.0.0.1/x",
        "https://evil.example/push",
        "http://fcm.googleapis.com/x",
        "https://fcm.googleapis.com:8443/x",
        "https://fcm.googleapis.com@evil.example/x",
        "https://web.push.apple.com.evil.example/x",
        "https://eu.push.apple.com:8443/x",
        "https://someone@eu.push.apple.com/x",
        "file:///etc/passwd",
        "https://[",
        "",
        "x" * 3_000,
    ):
        assert await client.refused("push.subscribe", endpoint=endpoint, **keys) == "bad_request"
    for fields in ({"public": "x"}, {"auth": ""}, {"public": "x" * 500}):
        refused = await client.refused("push.subscribe", endpoint=browser.endpoint, **(keys | fields))
        assert refused == "bad_request"
    for endpoint in ("https://fcm.googleapis.com/x", "https://wns2-par02p.notify.windows.com/w/?token=x"):
        await client.ask("push.subscribe", endpoint=endpoint, **keys)
    assert len(await names(client)) == 2


async def test_there_is_room_for_so_many_browsers_and_no_more(house_after, service):
    house = await house_after()
    client = await house.connect(role="admin")
    for _ in range(MAX_SUBSCRIPTIONS):
        browser, _ = await subscribed(client, service)
    other = service.browser()
    fields = {"endpoint": other.endpoint, "public": other.public, "auth": other.auth}
    assert await client.refused("push.subscribe", **fields) == "conflict"
    await client.ask("push.unsubscribe", endpoint=browser.endpoint)
    await client.ask("push.subscribe", **fields)


async def test_a_damaged_file_is_told_and_the_daemon_works(house_after, model):
    house = await house_after()
    (house.place.home / "push.json").write_text("{")
    house = await house_after()
    client = await house.connect(role="admin")
    (warning,) = [one for one in (await client.ask("daemon.status"))["warnings"] if "push.json" in one]
    assert "move it away" in warning
    assert await client.refused("push.key") == "unsupported"
    talk = await house.create("openai", await model(text("done")), client)
    await talk.run()


async def test_a_browser_is_told_of_a_timer_that_pauses_itself(tmp_path, service, model, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    async with AsyncExitStack() as stack:
        site = Site(stack, tmp_path)
        settings = f"[push]\nservices = [{json.dumps(service.url)}]\n[limits]\nattention_s = 3600\n"
        talk = await site.start(await model(text("one", usage=Tokens(input=100_000))), settings)
        browser, _ = await subscribed(await site.house.connect(role="admin"), service)
        timer = await talk.ask("timer.add", message="p", every_s=600, limit_usd=0.2)
        await talk.client.ask("timer.run", timer=timer["id"])
        await ended(talk)
        site.now += 600
        await timer_of(talk.client, timer["id"], state="paused")
        (told,) = await service.arrived(1)
        assert (told.browser, told.content["reason"], told.content["session"]) == (browser, "failed", talk.id)
        assert "has spent" in told.content["text"]
        assert f"zotctl schedule resume {timer['id']}" in told.content["text"]
