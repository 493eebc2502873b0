"""Logging in with a subscription, at a terminal."""

import asyncio
import json
import threading

import pytest

from tests.zottui.journeys.table import journey
from tests.zottui.journeys.world import PROMPT
from zotd.testing.auth_server import AuthServer


class Vendor:
    """An authorization server in a thread of its own."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.server = AuthServer()

    def call(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(20)

    def enter(self, state="granted"):
        """Do what the user does with the code that was requested last."""
        code = list(self.server.devices)[-1]
        self.loop.call_soon_threadsafe(self.server.enter, code, state)
        return code

    def __enter__(self):
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.call(self.server.__aenter__())
        return self

    def __exit__(self, *_):
        self.call(self.server.__aexit__(None, None, None))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(20)
        self.loop.close()


@pytest.fixture
def vendor(world):
    with Vendor() as one:
        model = {"base_url": world.model.server.openai_url, "login_url": one.server.url}
        world.configure(**{"providers.copilot": model})
        world.run("zotctl", "reload")
        yield one


def say(zot, words):
    zot.type(words)
    zot.key("Enter")


@journey(2)
def test_a_code_is_shown_until_it_was_entered_and_the_session_then_uses_the_login(world, vendor):
    world.model.says("I am")
    zot = world.zot(OPENAI_API_KEY="")
    zot.wait("no key for Anthropic")
    say(zot, "/login copilot")
    zot.wait("GitHub Copilot: enter the code .* on the page")
    vendor.enter()
    zot.wait("logged in to GitHub Copilot")
    zot.wait("^copilot/")
    say(zot, "are you there?")
    zot.wait("^I am$")
    sent = world.model.requests[0].headers["Authorization"]
    assert sent.removeprefix("Bearer ") in vendor.server.keys
    assert sent.removeprefix("Bearer ") not in zot.history()
    say(zot, "/logout copilot")
    zot.wait("logged out of GitHub Copilot")
    zot.wait("no way to revoke")
    assert json.loads((world.home / "logins.json").read_text()) == {}


@journey(2)
def test_escape_cancels_a_login_and_a_refusal_is_told(world, vendor):
    zot = world.zot("--provider", "copilot")
    zot.wait("no key for GitHub Copilot: run /login, or set GITHUB_COPILOT_TOKEN")
    zot.wait(PROMPT)
    say(zot, "/login copilot")
    zot.wait("enter the code")
    zot.key("Escape")
    zot.wait("the login to GitHub Copilot was cancelled")
    say(zot, "/login copilot")
    zot.wait("enter the code .* on the page")
    vendor.enter("access_denied")
    zot.wait("error: the login to GitHub Copilot failed: it was refused")
    assert not (world.home / "logins.json").exists()
