"""All checks of `docs/reliability.md`, as one table: `python -m tests.faults`, or only those named: `... kills`.

The exit code is 1 when a promise was not kept. Progress goes to standard error, the table to standard output.
"""

import argparse
import asyncio
import logging
import secrets
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence

from tests.faults import (
    adoption,
    attach_detach,
    autostart,
    batches,
    checkpoints,
    cursors,
    duels,
    fallback,
    families,
    fleet,
    floods,
    homes,
    job_flood,
    kills,
    mutated_frames,
    postgres,
    power,
    slow_client,
    strays,
    weather,
)
from tests.faults.row import HEAD, Check, Options, Row

SEED_BITS = 32

Rows = Callable[[Options], Awaitable[Sequence[Row]]]


def _alone(check: Check) -> Rows:
    """A check with one row."""

    async def run(options: Options) -> list[Row]:
        return [await check(options)]

    return run


CHECKS: Mapping[str, Rows] = {
    "kills": kills.run,
    "cursors": _alone(cursors.run),
    "postgres": postgres.run,
    "fleet": fleet.run,
    "batches": _alone(batches.run),
    "power": _alone(power.run),
    "duels": _alone(duels.run),
    "floods": _alone(floods.run),
    "job_flood": _alone(job_flood.run),
    "weather": _alone(weather.run),
    "fallback": _alone(fallback.run),
    "families": _alone(families.run),
    "checkpoints": _alone(checkpoints.run),
    "slow_client": _alone(slow_client.run),
    "attach_detach": _alone(attach_detach.run),
    "autostart": _alone(autostart.run),
    "strays": _alone(strays.run),
    "adoption": adoption.rows,
    "mutated_frames": _alone(mutated_frames.run),
}


def main() -> int:
    """Run what is named, or all; the exit code."""
    arguments = _parser().parse_args()
    unknown = set(arguments.names) - CHECKS.keys()
    if unknown:
        sys.exit(f"no check {', '.join(sorted(unknown))}; there are {', '.join(CHECKS)}")
    seed = secrets.randbits(SEED_BITS) if arguments.seed is None else arguments.seed
    options = Options(seed, arguments.share, arguments.kills, arguments.resume, say=_say)
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # a model whose client is killed is no news
    _say(f"seed {seed}")
    try:
        return asyncio.run(_run(arguments.names or list(CHECKS), options))
    except KeyboardInterrupt:
        _say(f"interrupted; the same again: python -m tests.faults {' '.join(_again(options, arguments.names))}")
        return 130


async def _run(names: Sequence[str], options: Options) -> int:
    sys.stdout.write(f"{HEAD}\n")
    ok = True
    for name in names:
        for row in await CHECKS[name](options):
            sys.stdout.write(f"{row.line()}\n")
            sys.stdout.flush()
            ok &= row.ok
    return 0 if ok else 1


def _again(options: Options, names: Sequence[str]) -> list[str]:
    wanted = {"--seed": options.seed, "--share": options.share, "--kills": options.kills, "--resume": options.resume}
    return [*names, *(f"{name} {value}" for name, value in wanted.items() if value is not None)]


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="Is what was promised kept?")
    parser.add_argument("names", nargs="*", metavar="CHECK", help=f"one of: {', '.join(CHECKS)}; all by default")
    parser.add_argument("--seed", type=int, help="of everything random; by default a new one, which is printed")
    parser.add_argument("--share", type=float, default=1.0, help="how much of each count is done, 1 by default")
    parser.add_argument("--kills", type=int, metavar="N", help="kills at random instants, 1,000 by default")
    parser.add_argument("--resume", choices=homes.RESUME, help="how sessions go on; by default each way in its turn")
    return parser


if __name__ == "__main__":
    sys.exit(main())
