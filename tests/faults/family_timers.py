"""Timers beside a family while its daemon is killed: each is fired once, and what its prompt runs is run once."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from zotd.client.fields import child, children, spoken, text
from zotd.clock import rfc3339
from zotd.testing.model_server import Received
from zotd.testing.script import Answer, CallPart, ScriptedReply, TextPart
from zotd.testing.wire_client import WireClient

SOON = (1, 2, 2)
"""Seconds after which a timer of the session is due; two are due at once."""

MARK = "tick"

KINDS = ("prompts of timers lost", "sent twice", "their commands run twice")


def configure(home: Path, url: str) -> None:
    """Give the daemon of a home that is still to be made a model for the sessions that timers begin."""
    home.mkdir(mode=0o700)
    vendor = f'[providers.ollama]\nbase_url = "{url}"\n'
    (home / "config.toml").write_text(f'provider = "ollama"\nmodel = "m"\n{vendor}')


def answer(request: Received) -> Answer | None:
    """What the model says to the prompt of a timer: it runs a command with its words, and is done; None: it is no such prompt."""
    message = request.messages[-1]
    last = next(one for one in reversed(request.messages) if one["role"] == "user")
    words = (text(last, "content") or spoken(last)).partition("\n")[0]
    if MARK not in words:
        return None
    if message["role"] == "user":
        return ScriptedReply([CallPart("bash", {"command": f"echo '{words}' >> witness"})])
    return ScriptedReply([TextPart(["ok"])])


class FamilyTimers:
    """The timers of one family: of a session of theirs, and one that begins a session."""

    def __init__(self, family: str) -> None:
        self.count = len(SOON) + 2
        self._family = family
        self._session = ""

    async def begin(self, client: WireClient, asks: dict[str, str]) -> None:
        """Add them. One is due at once, the others while the daemon is being killed; none of them is due twice."""
        self._session = text(child(await client.ask("session.create", **asks), "session"), "id")
        now = math.ceil(time.time())
        for number, seconds in enumerate(SOON, 1):
            await client.ask("timer.add", session=self._session, message=self._words(number), at=rfc3339(now + seconds))
        await client.ask("timer.add", session=self._session, message=self._words(4), every_s=24 * 3600, now=True)
        await client.ask("timer.add", cwd=asks["cwd"], message=self._words(5), at=rfc3339(now + 1))

    async def look(self, client: WireClient, witness: Path) -> Counter[str]:
        """Wait until all have fired and their runs have ended; return the faults."""
        wanted = {self._words(number) for number in range(1, self.count + 1)}
        while not await self._are_over(client, wanted):
            pass
        for one in children(await client.ask("timer.list"), "timers"):
            await client.ask("timer.remove", timer=one["id"])  # a daemon has a limit of them
        prompts = Counter([one async for one in self._prompts(client)])
        lines = Counter(line for line in (await asyncio.to_thread(witness.read_text)).splitlines() if line in wanted)
        return Counter(
            {
                KINDS[0]: len(wanted - prompts.keys()),
                KINDS[1]: _beyond_one(prompts[words] for words in wanted),
                KINDS[2]: _beyond_one(lines.values()),
            }
        )

    def _words(self, number: int) -> str:
        return f"{self._family} {MARK}{number}"

    async def _are_over(self, client: WireClient, wanted: set[str]) -> bool:
        timers = [one for one in children(await client.ask("timer.list"), "timers") if one["message"] in wanted]
        if [(one.get("fired", 0), one["state"]) for one in timers] != [
            (1, "active")
        ]:  # the one that is due again tomorrow
            return False
        states = [one["state"] for one in await self._sessions(client)]
        return states == ["idle"] * len(states)

    async def _sessions(self, client: WireClient) -> list[dict[str, object]]:
        """The session of the timers, and those that a timer has begun for this family."""
        found = children(await client.ask("session.list", limit=100), "sessions")
        return [one for one in found if one["id"] == self._session or str(one["name"]).startswith(self._words(5))]

    async def _prompts(self, client):
        for one in await self._sessions(client):
            history = children(await client.ask("session.history", session=one["id"], limit=100), "messages")
            for message in history:
                if message["role"] == "user":
                    yield spoken(message).partition("\n")[0]


def _beyond_one(counts: Iterable[int]) -> int:
    return sum(max(count - 1, 0) for count in counts)
