"""A daemon with an open WebSocket door, a scripted model, and Chromium in front of it."""

import json
import signal
import sys
from collections import deque
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from zotd.testing.live_daemon import DaemonProcess, free_port
from zotd.testing.model_server import ModelServer
from zotd.testing.script import Answer, Refusal
from zotd.testing.wire_client import WireClient

WAIT_MS = 20_000
"""Longest wait for something to be seen; a loaded machine takes a second for what takes 20 ms."""

QUIET = ("WebSocket connection to",)
"""What Chromium itself writes to the console when a daemon is away, which is no fault of the page."""

WATCH = "addEventListener('securitypolicyviolation', (e) => console.error('CSP', e.violatedDirective, e.blockedURI))"


class World:
    """What the tests of a module share; each makes its own sessions and pages."""

    def __init__(self, daemon, model, browser, url):
        self.answers: deque[Answer] = deque()
        """What the model says next."""
        self.daemon = daemon
        self.model = model
        self.url = url
        self._browser = browser

    async def session(self, name, **options):
        """The id of a new session."""
        options = {"provider": "openai", "base_url": self.model.openai_url, "secrets": {"api_key": "k"}} | options
        async with WireClient.connect(self.daemon.place.socket) as client:
            env = {"PATH": self.daemon.place.env["PATH"]}
            made = await client.ask(
                "session.create", **{"cwd": str(self.daemon.place.cwd)} | options, name=name, env=env
            )
        session = made["session"]
        assert isinstance(session, dict)
        return session["id"]

    async def ask(self, command, /, **fields):
        """What another client asks the daemon."""
        async with WireClient.connect(self.daemon.place.socket) as client:
            await client.ask("hello", client={"name": "other"}, role="admin")
            return await client.ask(command, **fields)

    async def run(self, session, prompt):
        """Another client has the session do something, to its end."""
        async with WireClient.connect(self.daemon.place.socket) as client:
            await client.ask("attach", session=session)
            await client.ask("prompt", session=session, message=prompt)
            await client.until("done")

    async def token(self, name, role="approve"):
        """A new token."""
        return (await self.ask("token.create", name=name, role=role))["token"]

    def restart(self):
        """Kill the daemon and start it again."""
        self.daemon.end(signal.SIGKILL)
        self.daemon.start()

    @asynccontextmanager
    async def page(self, token=None, session="", prepare=None, **context):
        """A page of its own, let in with the token; at its end it must have done nothing that it should not.

        `prepare` is called with it before it loads anything.
        """
        faults: list[str] = []
        async with await self._browser.new_context(**context) as seen:
            seen.set_default_timeout(WAIT_MS)
            page = await seen.new_page()
            await page.add_init_script(WATCH)
            page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.on("request", lambda request: faults.extend(self._foreign(request.url)))
            if prepare is not None:
                await prepare(page)
            await page.goto(f"{self.url}/#{session}")
            if token is not None:
                await page.get_by_label("Token").fill(token)
                await page.get_by_role("button", name="Open").click()
            try:
                yield page
            except AssertionError as error:
                error.add_note(f"the page said: {faults}")
                raise
        assert [fault for fault in faults if not fault.startswith(QUIET)] == []

    def _foreign(self, url):
        return [] if urlsplit(url).netloc == urlsplit(self.url).netloc or url.startswith("data:") else [url]

    def next_answer(self):
        """What the model says now."""
        return self.answers.popleft() if self.answers else Refusal(400, "nothing was expected")


def entry(page, words):
    """What the conversation shows with these words."""
    return page.get_by_role("log").get_by_text(words)


PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@asynccontextmanager
async def opened(folder, browser):
    """A world for the time of a module."""
    port = free_port()
    daemon = DaemonProcess(folder)
    home = daemon.place.home
    home.mkdir()
    key = home / "auth.json"
    key.touch(mode=0o600)
    key.write_text(json.dumps({"openai": {"api_key": "k"}}))
    listen = json.dumps(f"127.0.0.1:{port}")
    world: World
    async with ModelServer(lambda _: world.next_answer()) as model:
        lines = ["[websocket]", f"listen = {listen}", "[providers.openai]", f'base_url = "{model.openai_url}"']
        adapter = json.dumps([sys.executable, "-m", "zotd.testing.odd_agent"])
        lines += ["[adapters.odd]", f"command = {adapter}", 'title = "Odd"', "start_s = 40"]
        (home / "config.toml").write_text("\n".join(lines) + "\n")
        with daemon:
            world = World(daemon, model, browser, f"http://127.0.0.1:{port}")
            yield world
