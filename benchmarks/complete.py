"""Completing a file name in a repository of 65,000 files: the first time, then from the index; and what others wait."""

import asyncio
import random
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import rig
from benchmarks.rig import Place, Row
from zotd.client.client import Client
from zotd.client.session import Session
from zotd.wire.api import Complete, Completions, Nothing, Pong

FILES = 65_000

FOLDERS = 6_500

WORDS = [
    "offset",
    "table",
    "config",
    "module",
    "view",
    "user",
    "api",
    "core",
    "store",
    "session",
    "writer",
    "reader",
    "index",
    "model",
    "handler",
    "test",
    "unit",
    "render",
    "parser",
    "token",
    "stream",
    "http",
    "client",
    "server",
    "auth",
    "login",
    "admin",
    "report",
]

ENDINGS = (".py", ".ts", ".rs", ".md")

WANTED = "src/app/deep/down/settings.py"
"""Comes first for each of `TYPED`; no other file has its name."""

TYPED = ("set", "sett", "settings.py", "SETTINGS", "down/set", "appdeepset")
"""What is typed: a beginning, the whole name, a directory and a name, and characters of all over the path."""

ROUNDS = 5

TARGET_MS = 100.0

OTHERS_MS = 10.0
"""What a completion may keep another client waiting."""

SEED = 1
"""The same repository each time."""


async def measure() -> list[Row]:
    """Rows for the first completion, for the later ones, and for a client beside."""
    with rig.place() as where:
        paths = await asyncio.to_thread(_repository, where.cwd)
        async with rig.daemon(where), rig.connect(where) as client, rig.connect(where) as beside:
            session = await client.create(str(where.cwd), provider="ollama", model="none", ephemeral=True)
            git = rig.median([_git(where) for _ in range(ROUNDS)]) * 1000
            first = await _complete(client, session, TYPED[0]) * 1000
            probes = {typed: _probe(client, session, typed) for typed in TYPED}
            later = await rig.in_turns(ROUNDS, {**probes, "scan": _scan(paths)})
            scan = rig.median(later.pop("scan")) * 1000
            alone, together = await _beside(client, session, beside)
    slowest = max(rig.median(taken) for taken in later.values()) * 1000
    name = f"complete a file among {FILES:,}"
    return [
        Row(f"{name}: the first time", first, "ms", git, "`git ls-files`, twice", "", None),
        Row(
            f"{name}: then, the slowest of {len(TYPED)} texts",
            slowest,
            "ms",
            scan,
            "one regular expression over one string",
            f"<= {TARGET_MS:g} ms",
            slowest <= TARGET_MS,
        ),
        Row(
            f"{name}: the longest that another client waits meanwhile",
            together,
            "ms",
            alone,
            "nobody completes",
            f"<= {OTHERS_MS:g} ms",
            together <= OTHERS_MS,
        ),
    ]


def _repository(cwd: Path) -> Sequence[str]:
    """Make it; its paths."""
    chance = random.Random(SEED)  # noqa: S311  (names, not keys)
    folders = ["/".join(chance.choices(WORDS, k=chance.randint(1, 4))) for _ in range(FOLDERS)]
    paths = {f"{chance.choice(folders)}/{'_'.join(chance.choices(WORDS, k=3))}{number}" for number in range(FILES - 1)}
    paths = {f"{path}{chance.choice(ENDINGS)}" for path in sorted(paths)} | {WANTED}
    for folder in {path.rpartition("/")[0] for path in paths}:
        (cwd / folder).mkdir(parents=True, exist_ok=True)
    for path in paths:
        (cwd / path).touch()
    for arguments in (["init", "--quiet"], ["add", "."]):
        subprocess.run(["git", *arguments], cwd=cwd, check=True)  # noqa: S603, S607  (the user's git, on our files)
    return sorted(paths)


def _git(where: Place) -> float:
    start = time.perf_counter()
    for kind in (["--cached"], ["--others", "--deleted", "--exclude-standard"]):
        subprocess.run(  # noqa: S603  (as above)
            ["git", "ls-files", "-z", *kind],  # noqa: S607
            cwd=where.cwd,
            env=where.env,
            check=True,
            stdout=subprocess.DEVNULL,
        )
    return time.perf_counter() - start


async def _complete(client: Client, session: Session, typed: str) -> float:
    start = time.perf_counter()
    answer = await client.ask(Complete(session=session.id, kind="file", text=typed), Completions)
    taken = time.perf_counter() - start
    if answer.items[:1] != [WANTED]:
        raise RuntimeError(f"the first for {typed} was {answer.items[:1]}")
    return taken


def _probe(client: Client, session: Session, typed: str) -> rig.Probe:
    async def probe() -> float:
        return await _complete(client, session, typed)

    return probe


def _scan(paths: Sequence[str]) -> rig.Probe:
    text = "\n".join(paths)

    async def probe() -> float:
        typed = TYPED[0]
        pattern = re.compile("^" + "".join(f"[^{one}\n]*+{one}" for one in typed) + ".*$", re.MULTILINE)
        start = time.perf_counter()
        sum(1 for _ in pattern.finditer(text))
        return time.perf_counter() - start

    return probe


async def _beside(client: Client, session: Session, beside: Client) -> tuple[float, float]:
    """The 99 % of a ping's milliseconds, alone and while completions come one after the other."""
    alone = [await _ping(beside) for _ in range(200)]
    together: list[float] = []
    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(_all(client, session), name="completions")
        while not work.done():
            together.append(await _ping(beside))
    return rig.percentile(alone, 99) * 1000, rig.percentile(together, 99) * 1000


async def _all(client: Client, session: Session) -> None:
    for _ in range(ROUNDS):
        for typed in TYPED:
            await _complete(client, session, typed)


async def _ping(client: Client) -> float:
    start = time.perf_counter()
    await client.ask(Nothing(), Pong, command="ping")
    return time.perf_counter() - start


if __name__ == "__main__":
    rig.run(measure)
