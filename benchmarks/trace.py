"""What a reader follows: calls and modules of `zotd` that a prompt and a `bash` call pass, on the thread of the event loop.

    python -m benchmarks.trace            calls, modules, and changes from one module to another
    python -m benchmarks.trace --modules  and each module with its functions

The figures are counts, so they are the same on every machine. Chance adds calls: `process.ledger` reads `/proc` if a tick of
the kernel's clock passes while `bash` starts, and a reply or an output can come in two pieces. So the shortest of many runs
is printed. `sys.setprofile` reports a `call` event for each call and for each continuation of a coroutine; only those whose
code is in `zotd` count. The runs before the measured ones load the modules that a process loads once.
"""

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import FrameType

import zotd
from benchmarks import rig
from zotd.embed.session_runtime import Runtime

PACKAGE = str(Path(zotd.__file__).parent)

PLAN = "once/bash"
"""A reply that calls `bash`, then one of a word: a run with two requests."""

WARM_UP = 3
"""Runs before the measured ones."""

RUNS = 40
"""Measured runs: on a busy machine most of them have calls that are there by chance."""


AFTERWARDS = "packing of the checkpoints"
"""How the name of the task begins that works after a run."""

SETTLE_S = 30.0
"""Longest wait for it, in seconds."""


@dataclass(slots=True)
class Trace:
    """The calls of one run, in order."""

    calls: list[tuple[str, str]] = field(default_factory=list)
    """Module and function."""
    asked_at: int | None = None
    """Number of calls before the first `stream` of a model."""

    @property
    def start(self) -> int:
        """Number of calls before the prompt; they belong to the run before."""
        return next(at for at, (_, name) in enumerate(self.calls) if name == "Session.prompt")

    def note(self, frame: FrameType, event: str, argument: object) -> None:
        """Take an event of `sys.setprofile`."""
        del argument
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE):
            return
        name = frame.f_globals["__name__"]
        if self.asked_at is None and code.co_name == "stream" and name.startswith("zotd.providers."):
            self.asked_at = len(self.calls)
        self.calls.append((name, code.co_qualname))


def table(calls: Sequence[tuple[str, str]]) -> str:
    """Calls, modules, and changes of the module from one call to the next."""
    modules = [module for module, _ in calls]
    changes = sum(one != other for one, other in pairwise(modules))
    return f"{len(calls)} calls, {len(set(modules))} modules, {changes} changes of module"


def listing(calls: Sequence[tuple[str, str]]) -> str:
    """Each module, those with the fewest calls first, with the calls of each function."""
    lines = []
    for module, count in sorted(Counter(module for module, _ in calls).items(), key=lambda item: item[1]):
        inside = Counter(function for name, function in calls if name == module)
        lines.append(f"{count:5}  {module}: " + ", ".join(f"{name} {times}" for name, times in inside.most_common()))
    return "\n".join(lines)


def shortest(ways: Iterable[Sequence[tuple[str, str]]]) -> Sequence[tuple[str, str]]:
    """The one that passes the fewest modules; of several, that with the fewest calls."""
    return min(ways, key=lambda calls: (len({module for module, _ in calls}), len(calls)))


async def traces() -> list[Trace]:
    """Follow prompts whose model calls `bash` once."""
    with rig.place() as place:
        async with _runtime(place) as runtime:
            for _ in range(WARM_UP):
                await _prompt(runtime)
            return [await _traced(runtime) for _ in range(RUNS)]


async def _traced(runtime: Runtime) -> Trace:
    found = Trace()
    sys.setprofile(found.note)
    try:
        await _prompt(runtime)
    finally:
        sys.setprofile(None)
    return found


@asynccontextmanager
async def _runtime(place: rig.Place) -> AsyncIterator[Runtime]:
    async with rig.model(place) as url:
        options = {
            "provider": "anthropic",
            "base_url": rig.base_url(url, "anthropic", PLAN),
            "api_key": "none",
            "cwd": str(place.cwd),
        }
        async with Runtime.open(options, env=place.env) as runtime:
            yield runtime


async def _prompt(runtime: Runtime) -> None:
    """Prompt, and wait until the work after the run has ended, which would be counted with the next one."""
    async for _ in runtime.prompt("go"):
        pass
    afterwards = [task for task in asyncio.all_tasks() if task.get_name().startswith(AFTERWARDS)]
    if afterwards:
        await asyncio.wait(afterwards, timeout=SETTLE_S)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trace", description="What does a prompt pass?")
    parser.add_argument("--modules", action="store_true", help="list each module with its functions")
    arguments = parser.parse_args()
    found = asyncio.run(traces())
    whole = shortest(one.calls[one.start :] for one in found)
    parts = {
        "prompt to provider": shortest(one.calls[one.start : one.asked_at] for one in found),
        "`bash` call with its two requests": whole,
        "the same without `zotd.providers`": [one for one in whole if not one[0].startswith("zotd.providers.")],
    }
    for name, calls in parts.items():
        sys.stdout.write(f"{name}: {table(calls)}\n")
        if arguments.modules:
            sys.stdout.write(listing(calls) + "\n\n")


if __name__ == "__main__":
    main()
