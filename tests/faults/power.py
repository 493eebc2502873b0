"""Power failures: the file system under a daemon loses what was not synced; then a client comes back with its cursor.

Each cut is one of a real ext4 on a loop device (`EXT4_IOC_SHUTDOWN` without a flush of its log), unmounted and mounted
again. A client keeps every event that it got. When its cursor is resumed, all of them must be what the journal holds;
when the journal has lost some, the daemon must say so with a snapshot.
"""

import asyncio
import fcntl
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.faults.row import Options, Row
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.model_server import ModelServer, Received
from zotd.testing.script import Answer, CallPart, Hang, ScriptedReply, TextPart, text
from zotd.testing.wire_client import Json, WireClient

CUTS = 200

DISK_BYTES = 256 * 1024 * 1024

SHUTDOWN = 0x8004587D
"""`EXT4_IOC_SHUTDOWN`, `_IOR('X', 125, __u32)`."""

WITHOUT_LOG_FLUSH = 2
"""What is in memory of the file system's own log is lost, too: as when the power fails."""

EVENTS = 14
"""A cut comes so many events after the first reply's start at most: two steps of a run have as many."""

SPAN_S = 0.02
"""A cut comes so much later at most."""

QUIET_S = 0.3
"""Longest wait for the next events: a reply that does not end sends none."""

RELEASE_S = 60.0
"""Longest wait for the end of mount namespaces of other tests that have a copy of the mount."""

LOOK_S = 0.05
"""Pause between two looks for them, in seconds."""

PROGRAMS = ("mkfs.ext4", "mount", "umount", "losetup")


@dataclass
class Outcome:
    """What came of all cuts."""

    cuts: int = 0
    resumed: int = 0
    """Cursors that held, and were right."""
    lost: int = 0
    """Cursors of events that the journal has lost, answered with a snapshot that says so."""
    needless: int = 0
    """Cursors that were refused although the journal has all that the client has seen."""
    complaints: list[str] = field(default_factory=list)
    """Cursors that were resumed into another history, and daemons that did not start."""

    @property
    def is_clean(self) -> bool:
        """No cursor was resumed that should not have been, and none was refused that could have been resumed."""
        return not self.complaints and not self.needless


@dataclass
class Story:
    """One session, as the client has seen it."""

    session: str
    epoch: str
    events: list[Json] = field(default_factory=list)
    """From the first on, without a gap."""

    @property
    def cursor(self) -> Json:
        """Where the client has read to."""
        return {"epoch": self.epoch, "seq": len(self.events)}

    def take(self, frames: list[Json]) -> None:
        """Add what is new of what came."""
        for frame in frames:
            if frame.get("session") == self.session and frame.get("seq") == len(self.events) + 1:
                self.events.append(frame)


def missing() -> str | None:
    """What this machine lacks for the check; None when it has everything."""
    if sys.platform != "linux":
        return "Linux"
    if os.geteuid() != 0:
        return "root"
    for program in PROGRAMS:
        if shutil.which(program) is None:
            return program
    found = subprocess.run(["losetup", "--find"], capture_output=True, check=False)
    return None if found.returncode == 0 and Path(found.stdout.decode().strip()).exists() else "a free loop device"


async def run(options: Options) -> Row:
    """One disk, one session, cut over and over."""
    start = time.monotonic()
    lacking = missing()
    found = Outcome() if lacking else await measure(options)
    for complaint in found.complaints:
        options.say(complaint)
    got = (
        f"skipped: {lacking} is missing"
        if lacking
        else f"{len(found.complaints)}; {found.resumed} cursors held, {found.lost} were of lost events and answered with "
        f"a snapshot, {found.needless} refused needlessly"
    )
    return Row(
        check=f"the power fails {found.cuts or options.of(CUTS)} times (ext4 on a loop device, shut down without a flush)",
        must_give="0 cursors that resume into another history",
        got=got,
        ok=found.is_clean,
        command=f"python -m tests.faults power --seed {options.seed}",
        seconds=time.monotonic() - start,
        seed=options.seed,
    )


async def measure(options: Options) -> Outcome:
    """All cuts, one life of the daemon before each."""
    chance = random.Random(options.seed)
    found = Outcome()
    story: Story | None = None
    async with ModelServer(partial(_answer, chance=chance)) as model:
        with TemporaryDirectory(prefix="zot-power-") as folder:
            disk = Disk(Path(folder))
            for number in range(1, options.of(CUTS) + 1):
                with disk.mounted() as top:
                    daemon = DaemonProcess(top, {"ANTHROPIC_API_KEY": "sk-none"})
                    said = await asyncio.to_thread(daemon.try_to_start)
                    try:
                        if not said.startswith("ready "):
                            found.complaints.append(f"cut {number - 1}: the daemon does not start: {said}")
                            return found
                        story = await Life(daemon, chance, found).live(story, model.url, disk)
                    finally:
                        await asyncio.to_thread(daemon.end, signal.SIGKILL)
                found.cuts = number
                if number % 20 == 0:
                    options.say(f"{number} cuts, {found.resumed} resumed, {found.lost} lost")
    return found


class Disk:
    """A file system in a file."""

    def __init__(self, folder: Path) -> None:
        """Make it in `folder`."""
        self._image = folder / "disk"
        self._top = folder / "top"
        self._top.mkdir()
        with self._image.open("wb") as image:
            image.truncate(DISK_BYTES)
        _call("mkfs.ext4", "-q", "-F", str(self._image))

    @contextmanager
    def mounted(self) -> Iterator[Path]:
        """Its top directory, until the end of the block; what was cut before is as it was on the disk."""
        _call("mount", "-o", "loop", str(self._image), str(self._top))
        try:
            yield self._top
        finally:
            _call("umount", str(self._top))
            self._wait_until_released()

    def _wait_until_released(self) -> None:
        """Wait until no loop device has the image.

        A mount namespace of another test, such as that of a jail, keeps a copy of the mount while it lives. Mounted again
        meanwhile, the file system would be the same one, which was shut down, and every access would fail.
        """
        for _ in range(round(RELEASE_S / LOOK_S)):
            if not subprocess.run(["losetup", "-j", str(self._image)], capture_output=True, check=True).stdout:
                return
            time.sleep(LOOK_S)
        raise TimeoutError(f"{self._image} is still mounted somewhere after {RELEASE_S:g} s")

    def cut(self) -> None:
        """Nothing that was not synced is on the disk, and nothing more gets there."""
        top = os.open(self._top, os.O_RDONLY)
        try:
            fcntl.ioctl(top, SHUTDOWN, struct.pack("I", WITHOUT_LOG_FLUSH))
        finally:
            os.close(top)


class Life:
    """One life of the daemon, which ends with a cut."""

    def __init__(self, daemon: DaemonProcess, chance: random.Random, found: Outcome) -> None:
        self._daemon = daemon
        self._chance = chance
        self._found = found

    async def live(self, story: Story | None, model_url: str, disk: Disk) -> Story:
        """Come back with the cursor, have something done, and cut; what the client has seen by then."""
        async with WireClient.connect(self._daemon.place.socket) as client:
            story = await self._begin(client, model_url) if story is None else await self._return(client, story)
            await client.ask("prompt", session=story.session, message="go")
            await client.until("assistant_start")  # the first takes a second: the vendor's library is loaded
            before = len(client.seen)
            wanted = self._chance.randint(0, EVENTS)
            with suppress(EOFError, ConnectionError, TimeoutError):
                async with asyncio.timeout(QUIET_S):  # the model has said all that it will
                    while sum("seq" in frame for frame in client.seen[before:]) < wanted:
                        await client.frame()
            await asyncio.sleep(self._chance.random() * SPAN_S)  # the instant itself: nothing is waited for
            disk.cut()
            await asyncio.to_thread(self._daemon.end, signal.SIGKILL)
            with suppress(EOFError, ConnectionError):
                await client.rest()
            story.take(client.seen)
        return story

    async def _begin(self, client: WireClient, model_url: str) -> Story:
        where = {"cwd": str(self._daemon.place.cwd), "provider": "anthropic", "base_url": model_url}
        made = await client.ask("session.create", **where)
        info = made["session"]
        assert isinstance(info, dict)
        story = Story(str(info["id"]), str(made["epoch"]))
        await client.ask("attach", session=story.session, after=story.cursor)
        return story

    async def _return(self, client: WireClient, story: Story) -> Story:
        """Attach with the cursor, and hold what was seen against what is stored."""
        answer = await client.ask("attach", session=story.session, after=story.cursor)
        async with WireClient.connect(self._daemon.place.socket) as other:
            everything = {"epoch": answer["epoch"], "seq": 0}
            await other.ask("attach", session=story.session, after=everything)
            await other.until("replay_complete")
            stored = Story(story.session, str(answer["epoch"]))
            stored.take(other.seen)
        holds = stored.events[: len(story.events)] == story.events
        if answer["mode"] == "resumed":
            self._found.resumed += holds
            if not holds:
                self._found.complaints.append(_difference(story, stored))
        elif holds:
            self._found.needless += 1
        else:
            self._found.lost += 1
        return stored


def _difference(story: Story, stored: Story) -> str:
    for seen, kept in zip(story.events, stored.events, strict=False):
        if seen != kept:
            return f"a cursor was resumed into another history: the client has {seen}, and stored is {kept}"
    return f"the cursor {len(story.events)} was resumed, and {len(stored.events)} events are stored"


def _answer(_: Received, chance: random.Random) -> Answer:
    """Replies that end, calls of a safe tool, and replies that go on when the power fails."""
    match chance.randrange(4):
        case 0 | 1:
            return ScriptedReply([TextPart(["one", "two"]), CallPart("glob", {"pattern": "*"})])
        case 2:
            return ScriptedReply([TextPart(["and "]), Hang()])
        case _:
            return text("that was all")


def _call(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
