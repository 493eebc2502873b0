"""A daemon in this loop that looks at a clock of the test, and what tests of timers ask it."""

from contextlib import AsyncExitStack
from datetime import UTC, datetime

from tests.e2e.conftest import House
from zotd.testing.live_daemon import serving

NINE = datetime(2026, 11, 27, 9, tzinfo=UTC).timestamp()

MODEL = "gpt-4o"
"""2.50 USD for a million tokens that are read."""


class Site:
    """A daemon in this loop that looks at a clock of the test, which can be started again."""

    def __init__(self, stack, folder):
        self.now = NINE
        self._stack, self._folder = stack, folder
        self._running = AsyncExitStack()
        self._variables = {}

    async def start(self, server, settings="", **variables):
        """Start it with a model of this server, these lines of the configuration and variables; returns a session."""
        self._variables = variables
        (self._folder / "zot").mkdir(mode=0o700, exist_ok=True)
        vendor = f'[providers.openai]\nbase_url = "{server.openai_url}"\n'
        text = f'provider = "openai"\nmodel = "{MODEL}"\n{vendor}{settings}'
        (self._folder / "zot" / "config.toml").write_text(text)
        self.house = await self._serve()
        return await self.create()

    async def create(self, **options):
        """A new session, which has its model and key from the configuration."""
        plain = {"base_url": None, "secrets": None, "env": None, "model": MODEL}
        return await self.house.create("openai", None, **plain, **options)

    async def restart(self, talk):
        """Start it again; the session as before."""
        await self._running.aclose()
        self.house = await self._serve()
        return await self.house.follow(talk.id)

    async def _serve(self):
        env = {
            "OPENAI_API_KEY": "sk-scripted-key",
            "ZOT_COMPACT_EARLY_AT": "0",
            **self._variables,
        }  # a summary would take answers
        self._running = await self._stack.enter_async_context(AsyncExitStack())
        place = await self._running.enter_async_context(serving(self._folder, env, clock=lambda: self.now))
        return House(self._running, place)


async def said(talk):
    """The prompts of a session; the model is told of a new day behind them."""
    return [words[0].partition("\n")[0] for role, words in await talk.texts() if role == "user"]


async def ended(talk):
    """The end of a run, after which the session is idle."""
    await talk.until("done")
    while await talk.state() == "running":
        pass


async def timer_of(client, key, **wanted):
    """The timer when its fields are as wanted; each look at the list is one at the clock."""
    while True:
        (timer,) = [one for one in (await client.ask("timer.list"))["timers"] if one["id"] == key]
        if all(timer.get(name) == value for name, value in wanted.items()):
            return timer
