"""kill -9 around checkpoints and restores: the files are in one state or the other, and what the user has stays theirs.

One daemon, one session. A run changes files in all ways; an undo takes that back, and a redo makes it again. Each of the
three is cut off at a random instant of the time that it takes when it is left alone.
"""

import asyncio
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.faults.row import Options, Row
from zotd.checkpoints.folders import folder_of, unfinished
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.model_server import ModelServer, Received
from zotd.testing.script import Answer, CallPart, ScriptedReply, TextPart
from zotd.testing.wire_client import WireClient

KILLS = 500

KINDS = ("run", "undo", "redo")
"""What is cut off."""

FILES = 8

MINE = "mine"
"""The file that the user changes before each kill."""

COMMAND = (
    "n={n}; mkdir -p d$n && for i in 0 1 2 3 4 5 6 7; do echo run $n > f$i; done && rm -rf d$((n-1)) && echo $n > d$n/x && "
    "echo ran k${{n}}x"
)

FINISH_S = 60.0
"""Longest time for an interrupted restore to be finished by a new daemon."""

LOOK_S = 0.02

STEP_S = 120.0
"""Longest time for anything else, on a machine with a lot besides."""

SLACK = 1.1
"""Kills come also a little behind the end."""


def reply(received: Received) -> Answer:
    """Call `bash` once for the run that is asked for, and then say that it is done."""
    history = json.dumps(received.messages)
    number = re.findall(r"go on with run (\d+)", history)[-1]
    if f"ran k{number}x" in history:
        return ScriptedReply([TextPart([f"run {number} is done"])])
    return ScriptedReply([CallPart("bash", {"command": COMMAND.format(n=number)})])


def expected(number: int) -> dict[str, str]:
    """The files after this run; 0: before the first."""
    if number == 0:
        return {}
    return {**{f"f{each}": f"run {number}\n" for each in range(FILES)}, f"d{number}/x": f"{number}\n"}


class UsersRepository:
    """The user's repository, with something staged, and a file of theirs that changes again and again."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self.folder = folder
        self._env = env
        self.text = "0"
        (folder / "tracked").write_text("tracked")
        self._git("init", "-q")
        self._git("add", "tracked")
        self._git("-c", "user.name=u", "-c", "user.email=u@localhost", "commit", "-qm", "first")
        (folder / "tracked").write_text("staged")
        self._git("add", "tracked")
        self._index = self._digest()

    def edit(self, text: str) -> None:
        """The user writes into their file."""
        self.text = text
        (self.folder / MINE).write_text(text)

    def files(self) -> dict[str, str]:
        """What runs have made, by path."""
        found = {}
        for place in self.folder.rglob("*"):
            name = place.relative_to(self.folder)
            if place.is_file() and name.parts[0] not in {".git", MINE, "tracked"}:
                found[str(name)] = place.read_text()
        return found

    def lost(self) -> int:
        """How many of the user's changes are lost."""
        mine, tracked = (self.folder / MINE).read_text(), (self.folder / "tracked").read_text()
        return (mine != self.text) + (tracked != "staged")

    def is_sound(self) -> bool:
        """Whether the user's repository is as it was."""
        return self._digest() == self._index and not self._git("fsck", "--full", "--strict")

    def _digest(self) -> str:
        return hashlib.sha256((self.folder / ".git" / "index").read_bytes()).hexdigest()

    def _git(self, *args: str) -> str:
        command = ["git", *args]
        done = subprocess.run(command, cwd=self.folder, env=self._env, check=True, capture_output=True, text=True)
        return done.stdout.strip()


class Victim:
    """The daemon, its session, and what has come of the kills."""

    def __init__(self, daemon: DaemonProcess, work: UsersRepository, chance: random.Random) -> None:
        self.kills: Counter[str] = Counter()
        self.cut: Counter[str] = Counter()
        """Kills after which the work had to be finished, or was not done."""
        self.between = 0
        self.lost = 0
        self.unsound = 0
        self._daemon = daemon
        self._work = work
        self._chance = chance
        self._session = ""
        self._number = 0
        self._took = dict.fromkeys(KINDS, 0.0)
        """How long each kind takes, in seconds."""

    async def begin(self) -> None:
        """Make the session, and learn how long everything takes."""
        async with WireClient.connect(self._daemon.place.socket) as client:
            asks = {"cwd": str(self._work.folder), "provider": "openai", "model": "scripted"}
            made = (await client.ask("session.create", **asks))["session"]
            assert isinstance(made, dict)
            self._session = str(made["id"])
        for _ in range(3):
            await self._whole("run", self._run)
            await self._whole("undo", self._undo)
            await self._whole("redo", self._redo)

    async def cut_off(self, kind: str) -> None:
        """Kill the daemon during something of this kind, start it again, and look at the files."""
        self._work.edit(str(self._chance.random()))
        if kind == "redo":
            await self._undo()
        if kind == "run":
            self._number += 1
        work = {"run": self._run, "undo": self._undo, "redo": self._redo}[kind]
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(_until_killed(work), name=kind)
            await asyncio.sleep(self._chance.random() * self._took[kind] * SLACK)  # the fault itself
            self._daemon.end(signal.SIGKILL)
            await task
        self.kills[kind] += 1
        states = [expected(self._number - 1), expected(self._number)]
        if kind != "run":  # a command that is cut off may leave anything
            self.between += self._torn(states)
        self._daemon.start()
        await self._finished()
        found = self._work.files()
        if kind != "run":
            self.between += sum(found.get(path) != content for path, content in min_difference(found, states).items())
        self.cut[kind] += found == states[kind == "undo"]
        self.lost += self._work.lost()
        self.unsound += not (self._work.is_sound() and self._is_readable())
        await self._settle(kind, found)

    async def _settle(self, kind: str, found: Mapping[str, str]) -> None:
        """Bring about the state after the last run again."""
        if kind == "run":
            await self._run()  # the one that was cut is not undone unasked, so another one follows
            self._number += 1
            await self._run()
        elif found != expected(self._number):
            await self._redo()
        self.between += self._work.files() != expected(self._number)

    async def _whole(self, kind: str, work: Callable[[], Awaitable[None]]) -> None:
        if kind == "run":
            self._number += 1
        start = time.monotonic()
        await work()
        self._took[kind] = time.monotonic() - start
        assert self._work.files() == expected(self._number - (kind == "undo"))

    async def _run(self) -> None:
        async with asyncio.timeout(STEP_S), WireClient.connect(self._daemon.place.socket) as client:
            await client.ask("attach", session=self._session)
            await client.ask("prompt", session=self._session, message=f"go on with run {self._number}")
            await client.until("done")

    async def _undo(self) -> None:
        await self._ask("session.undo")

    async def _redo(self) -> None:
        await self._ask("session.redo")

    async def _ask(self, command: str) -> None:
        async with asyncio.timeout(STEP_S), WireClient.connect(self._daemon.place.socket) as client:
            await client.ask(command, session=self._session)

    async def _finished(self) -> None:
        async with asyncio.timeout(FINISH_S):
            while unfinished(str(self._daemon.place.home)):  # noqa: ASYNC110  (nothing reports it)
                await asyncio.sleep(LOOK_S)

    def _torn(self, states: list[dict[str, str]]) -> int:
        """How many files are in neither state right after a kill, apart from drafts that are not in place."""
        found = {path: text for path, text in self._work.files().items() if ".zot-restore-" not in path}
        return sum(all(text != state.get(path) for state in states) for path, text in found.items())

    def _is_readable(self) -> bool:
        """Whether git finds nothing wrong in the shadow repository."""
        home, workspace = str(self._daemon.place.home), os.path.realpath(self._work.folder)
        command = ["git", "--git-dir", folder_of(home, workspace), "fsck", "--connectivity-only"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def min_difference(found: Mapping[str, str], states: list[dict[str, str]]) -> Mapping[str, str | None]:
    """Return the paths in which the files differ from the closer state, each with its content there."""
    differences = [
        {path: state.get(path) for path in {*found, *state} if found.get(path) != state.get(path)} for state in states
    ]
    return min(differences, key=len)


async def _until_killed(work: Callable[[], Awaitable[None]]) -> None:
    with suppress(OSError, EOFError, AssertionError, asyncio.IncompleteReadError):
        await work()


def _counts(kinds: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {kind}s" for kind, number in kinds.items())


async def run(options: Options) -> Row:
    """Kill, as often as the share says."""
    start = time.monotonic()
    chance = random.Random(options.seed)
    count = options.of(KILLS)
    with TemporaryDirectory(prefix="zot-") as folder:
        daemon = DaemonProcess(Path(folder), {"OPENAI_API_KEY": "sk-scripted"})
        async with ModelServer(reply) as model:
            config = f'model = "scripted"\n[providers.openai]\nbase_url = "{model.openai_url}"\n'
            daemon.place.home.mkdir(mode=0o700)
            (daemon.place.home / "config.toml").write_text(config)
            with daemon:
                victim = Victim(daemon, UsersRepository(daemon.place.cwd, daemon.place.env), chance)
                await victim.begin()
                for number in range(count):
                    await victim.cut_off(KINDS[number % len(KINDS)])
                    options.say(f"checkpoints: {number + 1} of {count} kills; cut: {_counts(victim.cut)}")
    kinds = ", ".join(f"{victim.kills[kind]} in {kind}" for kind in KINDS)
    return Row(
        check=f"kill -9 around checkpoints and restores, at {count} random instants ({kinds})",
        must_give="0 files between two states; 0 lost changes of the user; 0 times a repository or its index is damaged",
        got=f"{victim.between}; {victim.lost}; {victim.unsound}; not done yet at the kill: {_counts(victim.cut)}",
        ok=not (victim.between or victim.lost or victim.unsound),
        command=f"python -m tests.faults checkpoints --share {options.share:g} --seed {options.seed}",
        seconds=time.monotonic() - start,
        seed=options.seed,
    )
