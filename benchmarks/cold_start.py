"""A cold daemon to READY, with a thousand stored sessions. Cold is the process; the files are in the page cache."""

import time

from benchmarks import floors, history, rig
from benchmarks.rig import Place, Row

SESSIONS = 1000

MESSAGES = 20

ROUNDS = 9

TARGET_MS = 600.0


async def measure() -> list[Row]:
    """Two rows: with the sessions, and with none."""
    with rig.place() as full, rig.place() as empty:
        await history.write(full.home, full.cwd, sessions=SESSIONS, messages=MESSAGES)

        async def bare() -> float:
            return floors.bare_python()

        taken = await rig.in_turns(
            ROUNDS, {"bare": bare, "full": lambda: _start(full), "empty": lambda: _start(empty)}, warm_up=1
        )
    ms = {name: rig.median(samples) * 1000 for name, samples in taken.items()}
    target = f"<= {TARGET_MS:g} ms"
    return [
        Row(
            f"cold daemon to READY, {SESSIONS:,} stored sessions",
            ms["full"],
            "ms",
            ms["bare"],
            "bare Python",
            target,
            ms["full"] <= TARGET_MS,
        ),
        Row("the same, none stored", ms["empty"], "ms", ms["bare"], "bare Python", "", None),
    ]


async def _start(where: Place) -> float:
    start = time.perf_counter()
    async with rig.daemon(where):
        return time.perf_counter() - start


if __name__ == "__main__":
    rig.run(measure)
