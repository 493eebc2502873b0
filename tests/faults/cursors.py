"""Clients that leave and come back with their cursor at random moments while 4 sessions stream and run tools.

Each keeps the bytes of the events that it got. At the end they are held against the database: nothing lost, nothing
doubled, the order exact. Kills belong to `tests.faults.kills`; here it is load that must not make a gap.
"""

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.faults.comer import END, Comer, Story
from tests.faults.row import Options, Row
from zotd.store.journal import SqliteJournal
from zotd.store.opening import FILE
from zotd.testing.live_daemon import DaemonPaths, DaemonProcess
from zotd.testing.model_server import ModelServer, Received
from zotd.testing.script import Answer, CallPart, ScriptedReply, TextPart, text
from zotd.testing.wire_client import WireClient

SESSIONS = 4

CLIENTS = 24
"""Six to a session."""

PROMPTS = 40
"""In each session. Its transcript is cleared after each, so that requests to the model stay short."""

STEPS = 20
"""Of a run. Each commits seven events and streams eight pieces of text."""

PAGE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the stories of all clients are worth."""

    events: int
    """That they should have got, together."""
    attached: int
    """How often they came."""
    lost: int = 0
    doubled: int = 0
    misplaced: int = 0
    """Stories with the right events in another order, or with other bytes."""
    refused: int = 0
    """Cursors that did not hold."""

    @property
    def is_clean(self) -> bool:
        """Each client has seen exactly what the database has."""
        return not (self.lost or self.doubled or self.misplaced or self.refused)


async def run(options: Options) -> Row:
    """One daemon, all sessions at once."""
    start = time.monotonic()
    found = await measure(options)
    return Row(
        check=f"{CLIENTS} clients that attach, leave and come back {found.attached:,} times while {SESSIONS} sessions work",
        must_give="0 events lost, 0 doubled, order exact",
        got=f"{found.lost} lost, {found.doubled} doubled, {found.misplaced} in another order, {found.refused} cursors "
        f"refused, of {found.events:,} events",
        ok=found.is_clean,
        command=f"python -m tests.faults cursors --seed {options.seed}",
        seconds=time.monotonic() - start,
        seed=options.seed,
    )


async def measure(options: Options) -> Outcome:
    """Everything, and then the comparison with the database."""
    with TemporaryDirectory(prefix="zot-") as folder, DaemonProcess(Path(folder)) as daemon:
        async with ModelServer(_answer) as model:
            stories = await _live(daemon.place, model.url, options)
        daemon.end()
        stored = await _stored(daemon.place.home / FILE, {story.session for story in stories})
    return judged(stories, stored)


def judged(stories: Sequence[Story], stored: Mapping[str, Sequence[bytes]]) -> Outcome:
    """What clients have seen against what the database has, as lines, for each session."""
    lost = doubled = misplaced = 0
    for story in stories:
        right = stored[story.session]
        got = set(story.lines)
        lost += len(set(right) - got)
        doubled += len(story.lines) - len(got)
        misplaced += got == set(right) and len(got) == len(story.lines) and story.lines != right
    return Outcome(
        events=sum(len(stored[story.session]) for story in stories),
        attached=sum(story.attached for story in stories),
        lost=lost,
        doubled=doubled,
        misplaced=misplaced,
        refused=sum(story.refused for story in stories),
    )


async def _live(place: DaemonPaths, url: str, options: Options) -> list[Story]:
    chance = random.Random(options.seed)
    stories: list[Story] = []
    async with WireClient.connect(place.socket) as control, asyncio.TaskGroup() as tasks:
        for _ in range(SESSIONS):
            session, epoch = await _create(control, place.cwd, url)
            for _ in range(CLIENTS // SESSIONS):
                stories.append(Story(session, epoch))
                comer = Comer(place.socket, stories[-1], random.Random(chance.random()))
                tasks.create_task(comer.live())
            tasks.create_task(_work(place.socket, session, options.of(PROMPTS)))
    return stories


async def _create(control: WireClient, cwd: Path, url: str) -> tuple[str, str]:
    """A new session's id, and the epoch of cursors."""
    options = {"cwd": str(cwd), "provider": "anthropic", "base_url": url, "secrets": {"api_key": "sk-none"}}
    made = await control.ask("session.create", **options)
    info = made["session"]
    assert isinstance(info, dict)
    return str(info["id"]), str(made["epoch"])


async def _work(path: str, session: str, prompts: int) -> None:
    """Keep a session busy, then tell those who follow it that this was all."""
    async with WireClient.connect(path) as client:
        await client.ask("attach", session=session)
        for _ in range(prompts):
            client.seen.clear()
            await client.ask("prompt", session=session, message="go")
            await client.until("done")
            await client.ask("clear", session=session)
        await client.ask("session.rename", session=session, name=END)


def _answer(received: Received) -> Answer:
    step = sum(message["role"] == "assistant" for message in received.messages)
    if step == STEPS:
        return text("that was all")
    return ScriptedReply([TextPart([f"{step}", *"abcdefg"]), CallPart("glob", {"pattern": "*"})])


async def _stored(path: Path, sessions: set[str]) -> dict[str, list[bytes]]:
    """The events of each session in the database, in their order."""
    journal = await SqliteJournal.open(path)
    try:
        return {session: await _events(journal, session) for session in sessions}
    finally:
        await journal.close()


async def _events(journal: SqliteJournal, session: str) -> list[bytes]:
    found: list[bytes] = []
    seq, page = await journal.events_after(session, 0, PAGE_BYTES)
    while page:
        found += page.splitlines()
        seq, page = await journal.events_after(session, seq, PAGE_BYTES)
    return found
