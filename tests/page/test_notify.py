"""Push messages to a phone, with the page that can be installed; the push service is a scripted one."""

import json

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.page.world import PHONE
from zotd.testing.push_server import PushServer
from zotd.testing.script import CallPart, calls, text

pytestmark = pytest.mark.asyncio(loop_scope="module")

# Chromium would ask its vendor's push service for an address.
SUBSCRIBE = """(() => {
  const [endpoint, p256dh, auth] = FIELDS;
  const subscribed = (key) => ({
    endpoint,
    options: { applicationServerKey: Uint8Array.from(atob(key.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0)) },
    toJSON: () => ({ endpoint, keys: { p256dh, auth } }),
    unsubscribe: async () => (localStorage.removeItem("stub"), true),
  });
  PushManager.prototype.subscribe = async ({ applicationServerKey: key }) => {
    localStorage.setItem("stub", key);
    return subscribed(key);
  };
  PushManager.prototype.getSubscription = async () => {
    const key = localStorage.getItem("stub");
    return key === null ? null : subscribed(key);
  };
})()"""


@pytest_asyncio.fixture(loop_scope="module")
async def service(world):
    async with PushServer() as service:
        config = world.daemon.place.home / "config.toml"
        before = config.read_text()
        config.write_text(f"{before}[push]\nservices = [{json.dumps(service.url)}]\n[limits]\nattention_s = 0\n")
        await world.ask("daemon.reload")
        yield service
        config.write_text(before)
        await world.ask("daemon.reload")
    assert service.faults == []


SHOWN = """async (wait_ms) => {
    const worker = await navigator.serviceWorker.ready;
    const end = performance.now() + wait_ms;
    for (;;) {  // one that replaces another is away for an instant
        const shown = await worker.getNotifications();
        if (shown.length > 0 || performance.now() > end) return shown.map((one) => [one.title, one.body, one.tag]);
        await new Promise((after) => setTimeout(after, 20));
    }
}"""
"""Waits for notifications, and returns them; after so many milliseconds without one, an empty list."""

DELIVERED_MS = 10_000
"""How long a message may take from the browser to its notification."""

DELIVERIES = 5
"""How often a message is handed over: Chromium drops one, silently, whose worker does not start in time on a busy machine."""


async def enable(page, browser):
    """Turn the messages on, as this browser."""
    await page.context.grant_permissions(["notifications"])
    await page.add_init_script(
        SUBSCRIBE.replace("FIELDS", json.dumps([browser.endpoint, browser.public, browser.auth]))
    )
    await page.reload()
    await page.get_by_role("button", name="Notify this device").click()
    await expect(page.get_by_role("button", name="Stop notifying this device")).to_be_visible()


async def deliver(page, url, content):
    """Hand a message to the service worker, as the browser does."""
    protocol = await page.context.new_cdp_session(page)
    found: list[str] = []
    protocol.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda event: found.extend(one["registrationId"] for one in event["registrations"]),
    )
    await protocol.send("ServiceWorker.enable")
    await page.wait_for_function("navigator.serviceWorker.ready.then(() => true)")
    message = {"origin": url, "registrationId": found[-1], "data": json.dumps(content)}
    for _ in range(DELIVERIES):
        await protocol.send("ServiceWorker.deliverPushMessage", message)
        if shown := await page.evaluate(SHOWN, DELIVERED_MS):
            return shown
    return []


async def test_a_phone_is_told_of_a_waiting_call_while_nobody_looks(world, token, service):
    world.answers.extend([calls(CallPart("bash", {"command": "true"})), text("done")])
    session = await world.session("Greenhouse", mode="ask")
    browser = service.browser()
    async with world.page(token, **PHONE) as page:
        await enable(page, browser)
        assert [one["token"] for one in (await world.ask("push.list"))["browsers"]] == ["tests"]
        await world.ask("prompt", session=session, message="water")
        (message,) = await service.arrived(1)
        assert message.content["text"] == "Greenhouse: bash waits for your decision"
        assert await deliver(page, world.url, message.content) == [["zot needs you", message.content["text"], session]]
        # A client that has the session in focus gets no push message.
        await page.get_by_role("link", name="Greenhouse").click()
        await page.get_by_role("button", name="Allow once").click()
        await expect(page.get_by_role("log").get_by_text("done")).to_be_visible()
        await expect(page.get_by_role("button", name="Abort")).to_be_hidden()  # the run has ended, not only its text
        await page.get_by_role("link", name="Sessions").click()
        await page.get_by_role("button", name="Stop notifying this device").click()
        await expect(page.get_by_role("button", name="Notify this device")).to_be_enabled()  # the daemon has answered
        assert (await world.ask("push.list"))["browsers"] == []
    assert len(service.messages) == 1


async def test_the_messages_of_a_browser_end_with_its_token(world, service):
    lost = await world.token("lost-phone")
    session = await world.session("Cellar", mode="ask")
    browser, kept = service.browser(), service.browser()
    async with world.page(lost, **PHONE) as page:
        await enable(page, browser)
        fields = {"endpoint": kept.endpoint, "public": kept.public, "auth": kept.auth}
        await world.ask("push.subscribe", name="kept", **fields)
        await world.ask("token.revoke", name="lost-phone")
        await expect(page.get_by_role("alert").first).to_have_text("The token is not accepted.")
    await world.token("lost-phone")  # another token of this name does not bring the messages back
    world.answers.append(calls(CallPart("bash", {"command": "true"})))
    await world.ask("prompt", session=session, message="look")
    (message,) = await service.arrived(1)
    assert message.browser is kept
    # The other one is removed when a message is due, beside its delivery to this one.
    while [one["name"] for one in (await world.ask("push.list"))["browsers"]] != ["kept"]:
        pass
    await world.ask("abort", session=session)
    await world.ask("push.unsubscribe", endpoint=kept.endpoint)


async def test_a_subscription_outlives_the_page_but_not_the_key_of_the_daemon(world, token, service):
    browser = service.browser()
    async with world.page(token, **PHONE) as page:
        await enable(page, browser)
        await world.ask("push.unsubscribe", endpoint=browser.endpoint)
        await page.reload()
        await expect(page.get_by_role("button", name="Stop notifying this device")).to_be_visible()
        assert len((await world.ask("push.list"))["browsers"]) == 1
        await page.evaluate("localStorage.setItem('stub', 'AAAA')")
        await page.reload()
        await expect(page.get_by_role("button", name="Notify this device")).to_be_visible()
        assert await page.evaluate("localStorage.length") == 0
    await world.ask("push.unsubscribe", endpoint=browser.endpoint)


async def test_the_page_can_be_installed_and_its_worker_keeps_nothing(world, token):
    async with world.page(token, **PHONE) as page:
        manifest = await page.evaluate("fetch('/page.webmanifest').then((answer) => answer.json())")
        for icon in manifest["icons"]:
            answer = await page.request.get(world.url + icon["src"])
            assert (answer.status, answer.headers["content-type"]) == (200, icon["type"])
        protocol = await page.context.new_cdp_session(page)
        found = await protocol.send("Page.getAppManifest")
        assert (found["errors"], found["url"]) == ([], f"{world.url}/page.webmanifest")
        errors = (await protocol.send("Page.getInstallabilityErrors"))["installabilityErrors"]
        assert {one["errorId"] for one in errors} <= {"in-incognito"}  # where tests are
        assert await page.evaluate("caches.keys()") == []


async def test_a_token_is_remembered_on_a_device_only_when_asked(world):
    remembered = await world.token("remembered")
    async with world.page(**PHONE) as page:
        await page.get_by_label("Token").fill(remembered)
        await page.get_by_label("Remember it on this device").check()
        await page.get_by_role("button", name="Open").click()
        await expect(page.get_by_role("button", name="Forget token")).to_be_visible()
        later = await page.context.new_page()
        await later.goto(world.url)
        await expect(later.get_by_role("button", name="Forget token")).to_be_visible()
        await later.get_by_role("button", name="Forget token").click()
        assert await later.evaluate("localStorage.length + sessionStorage.length") == 0
