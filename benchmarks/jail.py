"""A command in a jail: what each mechanism adds to starting `bash -c true` and waiting for it."""

import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import rig
from benchmarks.rig import Row
from zotd.jail import Jail, JailError, Mechanism, find_jail
from zotd.process import spawn

ROUNDS = 100

TARGETS_MS = {Mechanism.LANDLOCK: 0.5, Mechanism.BUBBLEWRAP: 8.0}


async def measure() -> list[Row]:
    """One row for each mechanism that works here."""
    with TemporaryDirectory(dir="/var/tmp") as folder:
        env = furnished(Path(folder))
        work = str(Path(env["HOME"], "work"))
        jails: dict[str, Jail | None] = {"none": None}
        for mechanism in Mechanism:
            try:
                jails[mechanism] = find_jail(work, env, network=False, among=[mechanism])
            except JailError as error:
                sys.stderr.write(f"{mechanism} is not measured: {error}\n")

        async def command(jail: Jail | None) -> float:
            since = time.perf_counter()
            argv = ["/bin/bash", "-c", "true"]
            async with spawn(argv, cwd=work, env=env, on_output=lambda _: None, jail=jail) as child:
                await child.wait()
            return time.perf_counter() - since

        probes = {name: lambda jail=jail: command(jail) for name, jail in jails.items()}
        taken = await rig.in_turns(ROUNDS, probes)
    ms = {name: rig.median(samples) * 1000 for name, samples in taken.items()}
    rows = []
    for mechanism, target in TARGETS_MS.items():
        if mechanism in ms:
            more = ms[mechanism] - ms["none"]
            what = f"what {mechanism} adds to `bash -c true`"
            rows.append(Row(what, more, "ms", ms["none"], "spawn and wait", f"<= {target:g} ms", more <= target))
    return rows


def furnished(root: Path) -> dict[str, str]:
    """The environment of a user with a home below `root`."""
    root = root.resolve()
    for name in ("home/.ssh", "home/.config", "home/work", "tmp"):
        (root / name).mkdir(parents=True)
    return {"HOME": str(root / "home"), "TMPDIR": str(root / "tmp"), "PATH": os.environ["PATH"]}


if __name__ == "__main__":
    rig.run(measure)
