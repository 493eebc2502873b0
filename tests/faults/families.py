"""kill -9 at random instants while a session, its subagents and their jobs work.

Nothing runs twice, each answer arrives once, the end of each job is told once, and no process is left.
"""

import asyncio
import json
import os
import random
import re
import shlex
import time
from collections import Counter
from contextlib import AsyncExitStack, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.faults import family_timers, kept_jobs
from tests.faults.family_timers import FamilyTimers
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

GONE_S = 20.0
"""Longest time for processes to end that nothing needs any more: the ladder of signals takes 3 s on a machine that is not busy."""

LOOK_S = 0.05
"""Pause between two looks at the processes."""

WITNESS = "witness"

PARTS = ("a", "b", "c")
"""Subagents of a session; `c` has one of its own."""

IN_BACKGROUND = ("e",)
"""Subagents that work in the background: each is a job, and its answer is told as the end of one."""

JOBS = 2 + kept_jobs.COUNT
"""Jobs of a session; `b` has one, too."""

JOB = "echo {name} >> {witness}"
"""A job that ends at once."""

SERVER = (
    "trap '' TERM; echo {name} >> {witness}; setsid sh -c 'trap \"\" TERM; exec sleep {seconds}' & "
    "while :; do sleep {seconds}; done"
)
"""A job that does not end, ignores SIGTERM, and has a process that has left its group. Its processes are known by `seconds`."""


def answer(request: Received) -> Answer:
    """What a member of a family says: it calls, and when its calls have results it is done."""
    if (ticked := family_timers.answer(request)) is not None:
        return ticked
    family, name = prompt_of(request).split()[:2]
    said = sum(message["role"] == "assistant" for message in request.messages)
    if name == "go" and said < 2:
        # In a step of their own: what is behind a call with an unknown outcome is not made.
        jobs = [_job(family, "job", JOB), _job(family, "server", SERVER)]
        jobs += kept_jobs.calls(family, WITNESS, _kept_seconds_of(family))
        tasks = [_task(family, part, background=True) for part in IN_BACKGROUND]
        tasks += [_task(family, part) for part in PARTS]
        return ScriptedReply(tasks if said else jobs)
    if said:
        return ScriptedReply([TextPart([f"answer of {family} {name}"])])
    ran = CallPart("bash", {"command": f"echo {shlex.quote(f'{family} {name}')} >> {WITNESS}"})
    more = {"b": [_job(family, "b-server", SERVER)], "c": [_task(family, "d")]}
    return ScriptedReply([ran, *more.get(name, [])])


def prompt_of(request: Received) -> str:
    """The prompt of the conversation."""
    message = next(message for message in request.messages if message["role"] == "user")
    return text(message, "content") or spoken(message)


def _task(family: str, name: str, **options: bool) -> CallPart:
    words = f"{family} {name}"
    return CallPart("task", {"prompt": words, "description": words, **options})


def _job(family: str, name: str, command: str) -> CallPart:
    filled = command.format(name=shlex.quote(f"{family} {name}"), witness=WITNESS, seconds=seconds_of(family))
    return CallPart("bash", {"command": filled, "background": True})


def seconds_of(family: str) -> int:
    """Return how long the processes of its jobs sleep: a number that nothing else has in its command line, also of another run."""
    return 73_000_000_000_000 + os.getpid() * 10_000 + int(family.removeprefix("family"))


def _kept_seconds_of(family: str) -> int:
    """Return the same for the job that is to stay."""
    return seconds_of(family) + 1_000_000_000_000


def processes_of(seconds: int) -> list[int]:
    """Return the processes of jobs that sleep so long."""
    word = str(seconds).encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if word in path.read_bytes():
                found.append(int(path.parent.name))
    return found


class FamilyKills:
    """Families of a daemon that is killed while they work, and the faults that were found."""

    def __init__(self, daemon: DaemonProcess, server: ModelServer, chance: random.Random) -> None:
        self.jobs = 0
        """Begun in sessions without a parent."""
        self.kills = self.timers = 0
        self.faults: Counter[str] = Counter()
        self._daemon = daemon
        self._server = server
        self._chance = chance

    async def run_family(self, number: int) -> None:
        """Have a family work, kill the daemon now and then, and count the faults."""
        family = f"family{number}"
        async with WireClient.connect(self._daemon.place.socket) as client:
            asks = {
                "cwd": str(self._daemon.place.cwd),
                "provider": "ollama",
                "model": "m",
                "base_url": self._server.openai_url,
            }
            session = text(child(await client.ask("session.create", **asks), "session"), "id")
            await client.ask("prompt", session=session, message=f"{family} go", request_id=family)
            timers = FamilyTimers(family)
            await timers.begin(client, asks)
            for _ in range(self._chance.randint(1, MOST)):
                await asyncio.sleep(self._chance.random() * PART_S)  # the instant itself: nothing is waited for
                await asyncio.to_thread(self._daemon.end, 9)
                await asyncio.to_thread(self._daemon.start)
                self.kills += 1
        async with WireClient.connect(self._daemon.place.socket) as client, asyncio.timeout(SETTLE_S):
            await self._settle(client, session)
            await self._look(client, session, family)
            self.faults += await timers.look(client, Path(self._daemon.place.cwd, WITNESS))
            self.timers += timers.count
            await self._look_at_jobs(client, session, family)

    async def _settle(self, client: WireClient, session: str) -> None:
        """Wait until the session has ended its run; with `resume = "auto"` it goes on by itself."""
        await client.ask("attach", session=session)
        while (state := (await client.ask("session.get", session=session))["state"]) != "idle":
            assert state in {"running", "held"}, state
        while any(
            job["state"] == "running" and ("session" in job or kept_jobs.is_brief(job))
            for job in await self._jobs(client, session)
        ):
            pass

    async def _jobs(self, client: WireClient, session: str) -> list[dict[str, object]]:
        return children(await client.ask("session.jobs", session=session), "jobs")

    async def _look(self, client: WireClient, session: str, family: str) -> None:
        members = children(await client.ask("session.family", session=session), "sessions")
        names = Counter(text(one, "name") for one in members[1:])
        self.faults["begun twice"] += sum(times - 1 for times in names.values())
        # Not that of `c`: when it is not known whether a command has run, the calls behind it are not made.
        self.faults["never begun"] += len({f"{family} {name}" for name in PARTS + IN_BACKGROUND} - names.keys())
        lines = await asyncio.to_thread(Path(self._daemon.place.cwd, WITNESS).read_text)
        ran = Counter(line for line in lines.splitlines() if line.startswith(f"{family} "))
        self.faults["run twice"] += sum(times - 1 for times in ran.values())
        history = children(await client.ask("session.history", session=session, limit=100), "messages")
        results = [str(message["content"]) for message in history if message["role"] == "tool"]
        for part in PARTS:
            found = sum(f"answer of {family} {part}" in result for result in results)
            self.faults["lost answers"] += found == 0
            self.faults["answers twice"] += found > 1
        self.faults["calls without one result"] += len(results) != len(PARTS + IN_BACKGROUND) + JOBS
        self.faults["members that did not end"] += sum(one["state"] != "idle" for one in members)

    async def _look_at_jobs(self, client: WireClient, session: str, family: str) -> None:
        """What the model is told of jobs that have ended, and which processes there are, before and after the session's end."""
        jobs = await self._jobs(client, session)
        self.jobs += len(jobs)
        if all(job["state"] != "running" or job.get("kept") is True for job in jobs):
            self.faults["processes left"] += await _left(family)
        # Another client: this one may still have the end of the last run among its events.
        async with WireClient.connect(self._daemon.place.socket) as other:
            await other.ask("attach", session=session)
            await other.ask("prompt", session=session, message=f"{family} go")
            await other.until("done")
        request = next(one for one in reversed(self._server.requests) if prompt_of(one) == f"{family} go")
        words = json.dumps(request.messages)
        for part in IN_BACKGROUND:
            found = words.count(f"answer of {family} {part}")
            self.faults["lost answers"] += found == 0
            self.faults["answers twice"] += found > 1
        told = Counter(re.findall(r"\[Job (j\d+) ", words))
        over = [text(job, "id") for job in jobs if job["state"] != "running"]
        self.faults["ends lost"] += sum(told[job] == 0 for job in over)
        self.faults["ends told twice"] += sum(times - 1 for times in told.values())
        await client.ask("detach", session=session)
        await client.ask("session.close", session=session)
        self.faults["processes left"] += await _left(family)
        seconds = _kept_seconds_of(family)
        self.faults += await kept_jobs.look(client, session, jobs, lambda: processes_of(seconds))
        self.faults["processes left"] += await _left_of(seconds)


async def _left(family: str) -> int:
    """Return how many processes of its jobs that are not to stay are left after `GONE_S`; earlier when there are none."""
    return await _left_of(seconds_of(family))


async def _left_of(seconds: int) -> int:
    found: list[int] = []
    for _ in range(round(GONE_S / LOOK_S)):
        found = await asyncio.to_thread(processes_of, seconds)
        if not found:
            break
        await asyncio.sleep(LOOK_S)  # they are nobody's children that could be waited for
    return len(found)


async def run(options: Options) -> Row:
    """Kill daemons while families work, with `resume = "auto"`."""
    began, wanted = time.monotonic(), options.of(KILLS)
    chance = random.Random(options.seed)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="zot-families-")))
        server = await stack.enter_async_context(ModelServer(answer))
        daemon = DaemonProcess(folder, {"ZOT_RESUME": "auto"})
        family_timers.configure(daemon.place.home, server.openai_url)
        await asyncio.to_thread(stack.enter_context, daemon)
        kills = FamilyKills(daemon, server, chance)
        for number in count(1):
            if kills.kills >= wanted:
                break
            await kills.run_family(number)
            options.say(f"families: {kills.kills} of {wanted} kills, {+kills.faults or 'no fault'}")
    kinds: tuple[str, ...] = ("begun twice", "never begun", "run twice", "lost answers", "answers twice")
    kinds += ("ends lost", "ends told twice", "processes left", *kept_jobs.KINDS, *family_timers.KINDS)
    rest = sum(times for kind, times in kills.faults.items() if kind not in kinds)
    return Row(
        check=f"kill -9 at {kills.kills} random instants while {number - 1} sessions have 5 subagents each, on two levels and in the background, "
        f"{kills.jobs} jobs, some of which are kept, and "
        f"{kills.timers} timers beside them",
        must_give="0 subagents begun twice, 0 never begun, 0 commands or jobs run twice, 0 answers lost, 0 given twice, "
        "0 ends of jobs not told, 0 told twice, 0 processes left, 0 kept jobs that did not run as they should, 0 not stopped, 0 timers not fired, 0 fired twice, 0 of their commands run twice, 0 other faults",
        got="; ".join(str(kills.faults[kind]) for kind in kinds) + f"; {rest}",
        ok=not +kills.faults,
        command=f"python -m tests.faults families --share {options.share:g} --seed {options.seed}",
        seconds=time.monotonic() - began,
        seed=options.seed,
    )
