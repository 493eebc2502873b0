"""Sessions with channels: the part of a daemon that channels need, in a loop or as a program that can be killed.

python -m tests.channels.house FOLDER MODEL_URL TELEGRAM_URL      prints `ready PID` when it serves
"""

import asyncio
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import zotd
from zotd.channels.channels import Channels
from zotd.channels.programs import Programs
from zotd.channels.state import PeerStore
from zotd.config import ChannelsSection, Config, ProviderSection, TelegramSection
from zotd.embed.assembly import assemble
from zotd.exthost.host import Host
from zotd.store.audit import AuditTrail
from zotd.store.journal import SqliteJournal
from zotd.tasks import contained
from zotd.testing.telegram_server import TOKEN
from zotd.wire import ext

ENV = {
    "PATH": os.environ["PATH"],
    "PYTHONPATH": str(Path(zotd.__file__).parent.parent),
    "OPENAI_API_KEY": "sk-scripted-key",
    "TELEGRAM_BOT_TOKEN": TOKEN,
}


class House:
    """A running one."""

    def __init__(self, home, manager, host, channels, journal):
        self.home = home
        self.manager = manager
        self.host = host
        self.channels = channels
        self.journal = journal
        self._doing: list[str] = []
        self._does = asyncio.Event()

    def send(self, name, frame):
        """As the host does, remembering what channels are told of runs."""
        if isinstance(frame, ext.ChannelBusy):
            self._doing.append(frame.text)
            self._does.set()
        return self.host.send(name, frame)

    async def does(self, words):
        """Wait until a channel was told that a run does this."""
        async with asyncio.timeout(60):
            while words not in self._doing:
                self._does.clear()
                await self._does.wait()

    async def inputs(self):
        """The texts of all prompts that were ever accepted."""
        rows, _ = await self.journal.list()
        found = [record for row in rows for record in await self.journal.records(row.id, 1)]
        return [record.content[-1].text for record in found if type(record).__name__ == "Input"]


@asynccontextmanager
async def serving(folder, model_url, telegram_url=None, *, cwd=None, **settings):
    """A house in this loop until the end of the block; a second one in the same folder goes on where it ended."""
    home = folder / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    telegram = TelegramSection(enabled=telegram_url is not None, base_url=telegram_url or "http://127.0.0.1:1")
    config = Config(
        provider="openai",
        providers={"openai": ProviderSection(base_url=model_url)},
        channels=ChannelsSection(telegram=telegram),
        **settings,
    )
    running: set[asyncio.Task[None]] = set()

    def spawn(name, work):
        task = contained(tasks, name, work)
        running.add(task)
        task.add_done_callback(running.discard)

    journal = await SqliteJournal.open(home / "zot.db")
    try:
        async with asyncio.TaskGroup() as tasks:
            parts = assemble(home=home, env=ENV, config=config, journal=journal, spawn=spawn, addressed=True)
            programs = Programs(home, config.channels.telegram)
            channels = Channels(
                store=PeerStore(home / "channels.json"),
                manager=parts.manager,
                send=lambda name, frame: house.send(name, frame),  # noqa: PLW0108  (the host comes later)
                spawn=spawn,
                cwd=cwd or home / "channels",
                audit=AuditTrail(journal.database),
            )
            host = Host(discover=programs.discover, surroundings=programs.surroundings(ENV), listener=channels)
            house = House(home, parts.manager, host, channels, journal)
            try:
                await channels.recover()
                await host.start()
                yield house
            finally:
                await parts.manager.stop()
                await host.stop()
                for task in list(running):
                    task.cancel()
                await parts.close()
    finally:
        await journal.close()


async def serve(folder, model_url, telegram_url):
    async with serving(Path(folder), model_url, telegram_url):
        sys.stdout.write(f"ready {os.getpid()}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main():
    asyncio.run(serve(*sys.argv[1:]))


if __name__ == "__main__":
    main()
