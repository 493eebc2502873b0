"""Two people answer each of 10,000 approvals at once: one of them wins, and the other learns who was quicker.

Ann allows, Ben denies. Who writes first is chance; each has a connection of their own. At the end the files say whether
what was decided is what was done: a call that Ann has won has run once, one that Ben has won has not.
"""

import asyncio
import random
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.faults.row import Options, Row
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.model_server import ModelServer, Received
from zotd.testing.script import Answer, CallPart, calls, text
from zotd.testing.wire_client import Json, WireClient

DUELS = 10_000

SESSIONS = 16
"""Side by side: in each, one call waits at a time."""

STEPS = 25
"""Calls of a run; then the transcript is cleared, so that requests to the model stay short."""

SETTLE_S = 10.0
"""Longest wait for the last answers, which come a moment after the run that they were about has ended."""

DECISIONS = {"ann": "allow", "ben": "deny"}

DONE = {"allow": "allowed", "deny": "denied"}
"""What the loser is told."""


@dataclass
class Duel:
    """One approval."""

    path: str
    """Of the file that exists if it was allowed."""
    answers: dict[str, Json] = field(default_factory=dict)
    """Of the two, by name."""
    told: dict[str, Json] = field(default_factory=dict)
    """What everybody was told of the outcome, by whom it was told."""

    def fault(self, cwd: Path) -> str | None:
        """What is wrong with how it went."""
        winners = [name for name, answer in self.answers.items() if answer["success"]]
        if len(self.answers) != len(DECISIONS) or len(winners) != 1:
            return f"{len(self.answers)} answers, and {winners} won"
        winner, decision = winners[0], DECISIONS[winners[0]]
        for loser, answer in self.answers.items():
            said = (answer.get("code"), answer.get("error"))
            if loser != winner and said != ("already_resolved", f"{winner} has {DONE[decision]} it already"):
                return f"{loser} was told {said}"
        if {(told["by"], told["decision"]) for told in self.told.values()} != {(winner, decision)}:
            return f"{winner} has won, and others were told {self.told}"
        if Path(cwd, self.path).exists() != (decision == "allow"):
            return f"{winner} has won, and the call did the contrary"
        return None


class Arena:
    """Both of them, and all that they decide about."""

    def __init__(self, people: dict[str, WireClient], chance: random.Random) -> None:
        self.duels: dict[str, Duel] = {}
        self._people = people
        self._chance = chance
        self._asked: dict[tuple[str, object], Duel] = {}
        self._heard = asyncio.Event()

    async def watch(self, name: str) -> None:
        """Hear all that one of them hears; to be cancelled."""
        client = self._people[name]
        while True:
            frame = await client.frame()
            client.seen.clear()
            match frame["type"]:
                case "approval_requested":
                    self._begin(frame)
                case "approval_resolved":
                    self.duels[str(frame["approval"])].told[name] = frame
                case "response" if (duel := self._asked.pop((name, frame.get("id")), None)) is not None:
                    duel.answers[name] = frame
                case _:
                    pass
            self._heard.set()

    async def settled(self) -> None:
        """Wait until both have heard how each duel ended; whoever looks at them finds out what is missing."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_S):
                while any(len(duel.answers) + len(duel.told) < 2 * len(DECISIONS) for duel in self.duels.values()):
                    self._heard.clear()
                    await self._heard.wait()

    def _begin(self, request: Json) -> None:
        """Both decide, as soon as one of them has heard of it."""
        key, args = str(request["approval"]), request["args"]
        if key in self.duels:
            return
        assert isinstance(args, dict)
        duel = self.duels[key] = Duel(args["path"])
        about = {"session": request["session"], "approval": key, "args_digest": request["args_digest"]}
        for name in self._chance.sample(list(self._people), len(self._people)):
            number = self._people[name].send("approve", **about, decision=DECISIONS[name])
            self._asked[name, number] = duel


async def run(options: Options) -> Row:
    """One daemon, two connections, and one that has something done in each session."""
    start = time.monotonic()
    wins, faults = await measure(options)
    for fault in faults[:5]:
        options.say(f"duels: {fault}")
    won = ", ".join(f"{name} won {count:,}" for name, count in wins.items())
    return Row(
        check=f"two clients answer one approval, {sum(wins.values()):,} times",
        must_give="1 winner each time, every loser told",
        got=f"{len(faults)} faults; {won}",
        ok=not faults,
        command=f"python -m tests.faults duels --seed {options.seed}",
        seconds=time.monotonic() - start,
        seed=options.seed,
    )


async def measure(options: Options) -> tuple[dict[str, int], list[str]]:
    """How often each has won, and what was wrong."""
    with TemporaryDirectory(prefix="zot-") as folder, DaemonProcess(Path(folder)) as daemon:
        async with ModelServer(_answer) as model:
            duels = await _fight(daemon, model.openai_url, options)
        faults = [fault for duel in duels if (fault := duel.fault(daemon.place.cwd)) is not None]
    wins = {name: sum(bool(duel.answers.get(name, {}).get("success")) for duel in duels) for name in DECISIONS}
    wanted = SESSIONS * sum(_runs(options))
    if len(duels) != wanted:
        faults.append(f"{len(duels)} approvals were requested instead of {wanted}")
    return wins, faults


async def _fight(daemon: DaemonProcess, url: str, options: Options) -> list[Duel]:
    path = daemon.place.socket
    async with WireClient.connect(path) as ann, WireClient.connect(path) as ben:
        people = {"ann": ann, "ben": ben}
        for name, client in people.items():
            await client.ask("hello", client={"name": name}, can_approve=True)
        sessions = []
        for _ in range(SESSIONS):
            asks = {"cwd": str(daemon.place.cwd), "mode": "ask", "provider": "openai", "base_url": url}
            made = (await ann.ask("session.create", **asks, secrets={"api_key": "sk-none"}))["session"]
            assert isinstance(made, dict)
            sessions.append(str(made["id"]))
            for client in people.values():
                await client.ask("attach", session=sessions[-1])
        arena = Arena(people, random.Random(options.seed))
        async with asyncio.TaskGroup() as tasks:
            watching = [tasks.create_task(arena.watch(name)) for name in people]
            async with asyncio.TaskGroup() as working:
                for number, session in enumerate(sessions):
                    working.create_task(_work(path, session, number, options))
            await arena.settled()
            for task in watching:
                task.cancel()
        return list(arena.duels.values())


def _runs(options: Options) -> list[int]:
    """How many steps each run of a session has; the last word of a prompt is the number of its steps."""
    left = max(1, options.of(DUELS) // SESSIONS)
    return [STEPS] * (left // STEPS) + ([left % STEPS] if left % STEPS else [])


async def _work(path: str, session: str, number: int, options: Options) -> None:
    async with WireClient.connect(path) as client:
        await client.ask("attach", session=session)
        for run, steps in enumerate(_runs(options)):
            client.seen.clear()
            await client.ask("prompt", session=session, message=f"{number}-{run} {steps}")
            await client.until("done")
            await client.ask("clear", session=session)


def _answer(received: Received) -> Answer:
    step = sum(message["role"] == "tool" for message in received.messages)
    asked = next(str(message["content"]) for message in received.messages if message["role"] == "user")
    name, steps = asked.split(" ")
    if step == int(steps):
        return text("that was all")
    return calls(CallPart("write", {"path": f"{name}-{step}", "content": "allowed"}))
