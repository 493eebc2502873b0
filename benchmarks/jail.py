"""A command in a jail: what each mechanism, and the proxy, adds to starting `bash -c true` and waiting for it.

A command reaches the proxy in a network namespace that was made ahead of need, which the default mode has for most commands, or
in one of its own, from which it hands a listener over.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import rig
from benchmarks.rig import Row
from zotd import paths
from zotd.jail import Jail, JailError, Mechanism, Network, NetworkOutlet
from zotd.jail.mechanisms import find_jail
from zotd.jail.site import JailSite
from zotd.process import spawn
from zotd.proxy import AllowList
from zotd.proxy.namespaces import NamespaceStock
from zotd.proxy.server import Outlet, ProxyServer, running_proxy
from zotd.started_process import Started

ROUNDS = 100


AHEAD = "bubblewrap and the proxy"
HANDOVER = "the same without a namespace that was made ahead"

TARGETS_MS = {Mechanism.LANDLOCK: 0.5, Mechanism.BUBBLEWRAP: 8.0, AHEAD: 8.0}


async def measure() -> list[Row]:
    """One row for each mechanism that works here, and one for each way to the proxy."""
    with TemporaryDirectory(dir="/var/tmp") as folder:
        env = furnished(Path(folder))
        stock = NamespaceStock(1)
        async with running_proxy(paths.outlet_dir(env), lambda _: None, namespaces=stock) as proxy:
            jails = found(env, proxy.outlet("benchmark", AllowList(())), has_stock=await proxy.prepare() > 0)
            probes = {name: partial(command, jail, env) for name, jail in jails.items()}
            if AHEAD in jails:
                probes[AHEAD] = partial(command_ahead, jails[AHEAD], env, proxy)
            taken = await rig.in_turns(ROUNDS, probes)
    ms = {name: rig.median(samples) * 1000 for name, samples in taken.items()}
    rows = []
    for name, target in TARGETS_MS.items():
        if name in ms:
            more = ms[name] - ms["none"]
            what = f"what {name} adds to `bash -c true`"
            rows.append(Row(what, more, "ms", ms["none"], "spawn and wait", f"<= {target:g} ms", more <= target))
    if HANDOVER in ms:
        more = ms[HANDOVER] - ms["none"]
        rows.append(Row(HANDOVER, more, "ms", ms["none"], "spawn and wait", "-", met=None))
    return rows


@dataclass(frozen=True, slots=True)
class Measured:
    """A jail, and the outlet of its commands."""

    jail: Jail
    outlet: NetworkOutlet | None

    def start(self, argv: Sequence[str], start: Callable[[Sequence[str]], Started]) -> Started:
        """Start a command in it."""
        return self.jail.start(argv, start, self.outlet)


@dataclass(frozen=True, slots=True)
class HandoverOnly:
    """An outlet without namespaces that were made ahead."""

    outlet: Outlet

    def admit(self) -> str:
        """See `NetworkOutlet`."""
        return self.outlet.admit()

    def entrance(self) -> None:
        """See `NetworkOutlet`."""


def found(env: Mapping[str, str], outlet: Outlet, *, has_stock: bool) -> dict[str, Measured | None]:
    """The jails that work here, by name; None runs without one."""
    jails: dict[str, Measured | None] = {"none": None}
    ways: list[tuple[str, Mechanism, Network, NetworkOutlet | None]] = [
        (Mechanism.LANDLOCK, Mechanism.LANDLOCK, Network.OFF, None),
        (Mechanism.BUBBLEWRAP, Mechanism.BUBBLEWRAP, Network.OFF, None),
        (HANDOVER, Mechanism.BUBBLEWRAP, Network.PROXIED, HandoverOnly(outlet)),
    ]
    if has_stock:
        ways.append((AHEAD, Mechanism.BUBBLEWRAP, Network.PROXIED, outlet))
    for name, mechanism, network, way in ways:
        try:
            jails[name] = Measured(find_jail(JailSite(work_of(env), env, network), [mechanism]), way)
        except JailError as error:
            sys.stderr.write(f"{name} is not measured: {error}\n")
    return jails


async def command_ahead(jail: Measured | None, env: Mapping[str, str], proxy: ProxyServer) -> float:
    """Run one when its namespace is ready, and return how many seconds it took."""
    assert await proxy.prepare()
    return await command(jail, env)


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
