"""kill -9 at random instants while a session and its subagents work: nothing runs twice, and each answer arrives once."""

import asyncio
import random
import shlex
import time
from collections import Counter
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.faults.row import Options, Row
from zotd.client.fields import child, children, spoken, text
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.model_server import ModelServer, Received
from zotd.testing.script import Answer, CallPart, ScriptedReply, TextPart
from zotd.testing.wire_client import WireClient

KILLS = 300

SETTLE_S = 60.0
"""Longest time for a family to end after the last kill."""

PART_S = 0.4
"""Within this time after a start the daemon is killed; a family needs about a second."""

MOST = 4
"""Kills of one family, so that each ends."""

WITNESS = "witness"

PARTS = ("a", "b", "c")
"""Subagents of a session; `c` has one of its own."""


def answer(request: Received) -> Answer:
    """What a member of a family says: it calls, and when its calls have results it is done."""
    family, name = prompt_of(request).split()[:2]
    if any(message["role"] == "tool" for message in request.messages):
        return ScriptedReply([TextPart([f"answer of {family} {name}"])])
    if name == "go":
        return ScriptedReply([_task(family, part) for part in PARTS])
    ran = CallPart("bash", {"command": f"echo {shlex.quote(f'{family} {name}')} >> {WITNESS}"})
    return ScriptedReply([ran, _task(family, "d")] if name == "c" else [ran])


def prompt_of(request: Received) -> str:
    """The prompt of the conversation."""
    message = next(message for message in request.messages if message["role"] == "user")
    return text(message, "content") or spoken(message)


def _task(family: str, name: str) -> CallPart:
    return CallPart("task", {"prompt": f"{family} {name}", "description": f"{family} {name}"})


class FamilyKills:
    """Families of a daemon that is killed while they work, and the faults that were found."""

    def __init__(self, daemon: DaemonProcess, url: str, chance: random.Random) -> None:
        self.kills = 0
        self.faults: Counter[str] = Counter()
        self._daemon = daemon
        self._url = url
        self._chance = chance

    async def run_family(self, number: int) -> None:
        """Have a family work, kill the daemon now and then, and look at what has come of it."""
        family = f"family{number}"
        async with WireClient.connect(self._daemon.place.socket) as client:
            asks = {"cwd": str(self._daemon.place.cwd), "provider": "ollama", "model": "m", "base_url": self._url}
            session = text(child(await client.ask("session.create", **asks), "session"), "id")
            await client.ask("prompt", session=session, message=f"{family} go", request_id=family)
            for _ in range(self._chance.randint(1, MOST)):
                await asyncio.sleep(self._chance.random() * PART_S)  # the instant itself: nothing is waited for
                await asyncio.to_thread(self._daemon.end, 9)
                await asyncio.to_thread(self._daemon.start)
                self.kills += 1
        async with WireClient.connect(self._daemon.place.socket) as client, asyncio.timeout(SETTLE_S):
            await self._settle(client, session)
            await self._look(client, session, family)

    async def _settle(self, client: WireClient, session: str) -> None:
        """Wait until the session has ended its run; with `resume = "auto"` it goes on by itself."""
        await client.ask("attach", session=session)
        while (state := (await client.ask("session.get", session=session))["state"]) != "idle":
            assert state in {"running", "held"}, state

    async def _look(self, client: WireClient, session: str, family: str) -> None:
        members = children(await client.ask("session.family", session=session), "sessions")
        names = Counter(text(one, "name") for one in members[1:])
        self.faults["begun twice"] += sum(times - 1 for times in names.values())
        # Not that of `c`: when it is not known whether a command has run, the calls behind it are not made.
        self.faults["never begun"] += len({f"{family} {name}" for name in PARTS} - names.keys())
        lines = await asyncio.to_thread(Path(self._daemon.place.cwd, WITNESS).read_text)
        ran = Counter(line for line in lines.splitlines() if line.startswith(f"{family} "))
        self.faults["run twice"] += sum(times - 1 for times in ran.values())
        history = children(await client.ask("session.history", session=session, limit=100), "messages")
        results = [str(message["content"]) for message in history if message["role"] == "tool"]
        for part in PARTS:
            found = sum(f"answer of {family} {part}" in result for result in results)
            self.faults["lost answers"] += found == 0
            self.faults["answers twice"] += found > 1
        self.faults["calls without one result"] += len(results) != len(PARTS)
        self.faults["members that did not end"] += sum(one["state"] != "idle" for one in members)


async def run(options: Options) -> Row:
    """Kill daemons while families work, with `resume = "auto"`."""
    began, wanted = time.monotonic(), options.of(KILLS)
    chance = random.Random(options.seed)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="zot-families-")))
        server = await stack.enter_async_context(ModelServer(answer))
        daemon = DaemonProcess(folder, {"ZOT_RESUME": "auto"})
        await asyncio.to_thread(stack.enter_context, daemon)
        kills = FamilyKills(daemon, server.openai_url, chance)
        for number in count(1):
            if kills.kills >= wanted:
                break
            await kills.run_family(number)
            options.say(f"families: {kills.kills} of {wanted} kills, {+kills.faults or 'no fault'}")
    kinds = ("begun twice", "never begun", "run twice", "lost answers", "answers twice")
    rest = sum(times for kind, times in kills.faults.items() if kind not in kinds)
    return Row(
        check=f"kill -9 at {kills.kills} random instants while {number - 1} sessions have 4 subagents each, on two levels",
        must_give="0 subagents begun twice, 0 never begun, 0 commands run twice, 0 answers lost, 0 given twice, 0 other faults",
        got="; ".join(str(kills.faults[kind]) for kind in kinds) + f"; {rest}",
        ok=not +kills.faults,
        command=f"python -m tests.faults families --share {options.share:g} --seed {options.seed}",
        seconds=time.monotonic() - began,
        seed=options.seed,
    )
