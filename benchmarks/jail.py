"""A command in a jail: what each mechanism, and the proxy, adds to starting `bash -c true` and waiting for it."""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from benchmarks import rig
from benchmarks.rig import Row
from zotd import paths
from zotd.jail import Jail, JailError, Mechanism, Network
from zotd.jail.mechanisms import find_jail
from zotd.process import spawn
from zotd.proxy import AllowList, Outlet, running_proxy

ROUNDS = 100

TARGETS_MS = {Mechanism.LANDLOCK: 0.5, Mechanism.BUBBLEWRAP: 8.0}

PROXIED = "proxied"

Started = TypeVar("Started")


async def measure() -> list[Row]:
    """One row for each mechanism that works here, and one for the proxy."""
    with TemporaryDirectory(dir="/var/tmp") as folder:
        env = furnished(Path(folder))
        async with running_proxy(paths.outlet_dir(env), lambda _: None) as proxy:
            jails = found(env, proxy.outlet("benchmark", AllowList(())))
            taken = await rig.in_turns(ROUNDS, {name: partial(command, jail, env) for name, jail in jails.items()})
    ms = {name: rig.median(samples) * 1000 for name, samples in taken.items()}
    rows = []
    for mechanism, target in TARGETS_MS.items():
        if mechanism in ms:
            more = ms[mechanism] - ms["none"]
            what = f"what {mechanism} adds to `bash -c true`"
            rows.append(Row(what, more, "ms", ms["none"], "spawn and wait", f"<= {target:g} ms", more <= target))
    if PROXIED in ms:
        without = ms[Mechanism.BUBBLEWRAP]
        rows.append(
            Row("what the proxy adds to that", ms[PROXIED] - without, "ms", without, "bubblewrap", "-", met=None)
        )
    return rows


@dataclass(frozen=True, slots=True)
class Measured:
    """A jail, and the outlet of its commands."""

    jail: Jail
    outlet: Outlet | None

    def start(self, argv: Sequence[str], start: Callable[[Sequence[str]], Started]) -> Started:
        """Start a command in it."""
        return self.jail.start(argv, start, self.outlet)


def found(env: Mapping[str, str], outlet: Outlet) -> dict[str, Measured | None]:
    """The jails that work here, by name; None runs without one."""
    jails: dict[str, Measured | None] = {"none": None}
    for name, mechanism, network, way in (
        (Mechanism.LANDLOCK, Mechanism.LANDLOCK, Network.OFF, None),
        (Mechanism.BUBBLEWRAP, Mechanism.BUBBLEWRAP, Network.OFF, None),
        (PROXIED, Mechanism.BUBBLEWRAP, Network.PROXIED, outlet),
    ):
        try:
            jails[name] = Measured(find_jail(work_of(env), env, network=network, among=[mechanism]), way)
        except JailError as error:
            sys.stderr.write(f"{name} is not measured: {error}\n")
    return jails


async def command(jail: Measured | None, env: Mapping[str, str]) -> float:
    """Run one, and return how many seconds it took."""
    since = time.perf_counter()
    argv = ["/bin/bash", "-c", "true"]
    async with spawn(argv, cwd=work_of(env), env=env, on_output=lambda _: None, jail=jail) as child:
        await child.wait()
    return time.perf_counter() - since


def work_of(env: Mapping[str, str]) -> str:
    """The working directory."""
    return str(Path(env["HOME"], "work"))


def furnished(root: Path) -> dict[str, str]:
    """The environment of a user with a home below `root`."""
    root = root.resolve()
    for name in ("home/.ssh", "home/.config", "home/work", "tmp", "runtime"):
        (root / name).mkdir(parents=True)
    places = {"HOME": "home", "TMPDIR": "tmp", "XDG_RUNTIME_DIR": "runtime"}
    return {name: str(root / place) for name, place in places.items()} | {"PATH": os.environ["PATH"]}


if __name__ == "__main__":
    rig.run(measure)
