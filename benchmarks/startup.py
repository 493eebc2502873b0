"""What people wait for in a shell: `zotctl ping`, `zot -p` with a model that answers at once; and `import zot` in a program."""

import sys
from contextlib import closing

from benchmarks import floors, rig
from benchmarks.rig import Row, World

ROUNDS = 25

PING_TARGET = 2.5

PROMPT_TARGET = 6.0

IMPORT_TARGET = 3.0

PLAN = "deltas/1"


async def measure() -> list[Row]:
    """Three rows."""
    async with rig.world() as world:
        await world.session("anthropic", PLAN)  # the daemon is warm: it has loaded the vendor's SDK
        commands = {"ping": rig.installed("zotctl", "ping"), "prompt": rig.installed("zot", *_prompt(world))}
        env = dict(world.place.env)
        imports = {name: [sys.executable, "-c", f"import {name}"] for name in ("zot", "asyncio, msgspec")}
        with closing(floors.Http(world.model, "anthropic", PLAN)) as http:

            async def bare() -> float:
                return floors.bare_python()

            async def model() -> float:
                return http.read()[1]

            async def ping() -> float:
                return floors.spawn(*commands["ping"], env=env)

            async def prompt() -> float:
                return floors.spawn(*commands["prompt"], env=env)

            async def libraries() -> float:
                return floors.spawn(*imports["asyncio, msgspec"], env=env)

            async def face() -> float:
                return floors.spawn(*imports["zot"], env=env)

            measured = {
                "bare": bare,
                "ping": ping,
                "model": model,
                "prompt": prompt,
                "libraries": libraries,
                "zot": face,
            }
            taken = await rig.in_turns(ROUNDS, measured)
    ms = {name: rig.median(samples) * 1000 for name, samples in taken.items()}
    return [
        _row("`zotctl ping`", ms["ping"], ms["bare"], PING_TARGET, least=min(taken["ping"]) / min(taken["bare"])),
        _row(
            "`zot -p`, the model taken off",
            ms["prompt"] - ms["model"],
            ms["bare"],
            PROMPT_TARGET,
            least=(min(taken["prompt"]) - min(taken["model"])) / min(taken["bare"]),
        ),
        _row(
            "`import zot`",
            ms["zot"],
            ms["libraries"],
            IMPORT_TARGET,
            floor="`import asyncio, msgspec`",
            least=min(taken["zot"]) / min(taken["libraries"]),
        ),
    ]


def _row(name: str, value: float, bare: float, target: float, *, least: float, floor: str = "bare Python") -> Row:
    met = value / bare <= target
    note = f"the fastest of each: {least:.2f}x"
    return Row(name, value, "ms", bare, floor, f"<= {target:g} x {floor}", met, note=note)


def _prompt(world: World) -> list[str]:
    url = rig.base_url(world.model, "anthropic", PLAN)
    where = ["--cwd", str(world.place.cwd), "--no-session"]
    return ["-p", "--provider", "anthropic", "--base-url", url, "--api-key", "none", *where, "hello"]


if __name__ == "__main__":
    rig.run(measure)
