"""What the extras cost who does not use them, and who does.

Each installation is a virtual environment with links to exactly the packages that pip would put there: those that zotd
requires, and those of one extra, or of all. Nothing else that this machine has can be found in it, so a search through the
installed packages takes as long as for a user.

The two installations take turns, and each is the first of every second round. What is compared is the least of each: what
else the machine does only adds time, and a virtual machine can be half as fast from one second to the next.
"""

import sys
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from subprocess import check_output
from tempfile import TemporaryDirectory

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks import floors, rig
from benchmarks.rig import Place, Row
from benchmarks.rpc import Rpc

ROUNDS = 20

IMPORT_ROUNDS = 5

PROJECT = "zotd"

OURS = ("zotd", "zotctl", "zottui")

EXTRAS: Mapping[str, tuple[str, str]] = {
    "bedrock": ("zotd.providers.anthropic", "zotd.providers.anthropic.bedrock, boto3"),
    "vertex": ("zotd.providers.anthropic", "zotd.providers.anthropic.vertex, google.auth"),
    "otel": ("zotd.providers.anthropic", "zotd.telemetry.export"),
    "keyring": ("zotd.store.logins", "keyring"),
    "local": ("zotd.providers.local_server", "xllamacpp"),
}
"""What a process has imported that does not use the extra, and what it imports besides when it does."""

USED = """
import {before}
import time
def resident():
    for line in open("/proc/self/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
start, mib = time.perf_counter(), resident()
import {more}
print(time.perf_counter() - start, resident() - mib, mib)
"""

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Installation:
    """An interpreter that finds what one installation has."""

    name: str
    python: str
    zot: str


MEASURES: Mapping[str, tuple[str, str]] = {
    "version": ("`zot --version`", "ms"),
    "ready": ("`zotd` to READY", "ms"),
    "daemon": ("memory of `zotd` after a run", "MiB"),
    "delta": ("`zot rpc`, start to first delta", "ms"),
    "rpc": ("memory of `zot rpc` after a run", "MiB"),
}
"""Each with the title of its row and its unit."""

LIMIT = 1.05
"""Times what it is without any extra: what the least of two installations of the same differ by."""


async def measure() -> list[Row]:
    """Rows for an installation with all extras, and for the use of each."""
    with TemporaryDirectory(prefix="zot-extras-") as folder, rig.place() as where:
        without, every = _installations(Path(folder))
        async with rig.model(where) as url:
            taken = await _in_turns([without, every], where, url)
        used = {extra: _use(every, extra) for extra in EXTRAS}
    rows = [_row(key, taken[every.name], taken[without.name]) for key in MEASURES]
    return [*rows, *(row for extra, figures in used.items() for row in _used_rows(extra, figures))]


def _row(key: str, samples: Sequence[Figures], bare: Sequence[Figures]) -> Row:
    title, unit = MEASURES[key]
    value, floor = (min(one[key] for one in taken) for taken in (samples, bare))
    medians = [rig.median([one[key] for one in taken]) for taken in (samples, bare)]
    title, note = f"{title}, all extras installed and none used", "medians: {:.4g} and {:.4g}".format(*medians)
    return Row(title, value, unit, floor, "none installed", f"<= {LIMIT:g} x", value <= LIMIT * floor, note=note)


def _used_rows(extra: str, figures: Figures) -> list[Row]:
    name = f"the extra `{extra}`, when it is used"
    return [
        Row(f"{name}: import", figures["ms"], "ms", None, "", "", None),
        Row(f"{name}: memory", figures["mib"], "MiB", figures["before"], "the process before", "", None),
    ]


async def _in_turns(installations: Sequence[Installation], where: Place, url: str) -> dict[str, list[Figures]]:
    taken: dict[str, list[Figures]] = {one.name: [] for one in installations}
    for number in range(ROUNDS + 1):
        for one in installations if number % 2 else installations[::-1]:
            figures = await _sample(one, where, url)
            if number:  # the first round fills the caches of the disk
                taken[one.name].append(figures)
    return taken


async def _sample(one: Installation, where: Place, url: str) -> Figures:
    env = dict(where.env)
    version = floors.spawn(one.zot, "--version", env=env)
    start = time.perf_counter()
    async with rig.daemon(where, python=one.python) as process:
        ready = time.perf_counter() - start
        async with rig.connect(where) as client:
            session = await client.create(
                str(where.cwd), provider="openai", base_url=f"{url}/deltas/1/v1", api_key="none", ephemeral=True
            )
            await rig.finish(session)
            daemon = rig.rss_mib(process)
    flags = ["--provider", "openai", "--base-url", f"{url}/deltas/1/v1", "--api-key", "none", "--cwd", str(where.cwd)]
    start = time.perf_counter()
    async with Rpc.start(env, flags, zot=one.zot) as rpc:
        await rpc.send(type="prompt", id="1", message="go")
        await rpc.until("text_delta")
        delta = time.perf_counter() - start
        await rpc.until("done")
        memory = rig.rss_mib(rpc.process)
        await rpc.end()
    return {"version": version * 1000, "ready": ready * 1000, "daemon": daemon, "delta": delta * 1000, "rpc": memory}


def _use(one: Installation, extra: str) -> Figures:
    before, more = EXTRAS[extra]
    program = USED.format(before=before, more=more)
    taken = [check_output([one.python, "-c", program], text=True).split() for _ in range(IMPORT_ROUNDS)]  # noqa: S603
    seconds, mib, base = (rig.median([float(words[index]) for words in taken]) for index in range(3))
    return {"ms": seconds * 1000, "mib": mib, "before": base}


# --- installations --------------------------------------------------------------------------------------------------


def _installations(folder: Path) -> tuple[Installation, Installation]:
    return _install(folder / "none", []), _install(folder / "all", list(EXTRAS))


def _install(folder: Path, extras: Sequence[str]) -> Installation:
    venv.create(folder, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = folder / "lib" / version / "site-packages"
    for name in sorted(_needed(PROJECT, extras)):
        _link(name, site)
    root = Path(__file__).parent.parent
    for package in OURS:
        (site / package).symlink_to(root / package)
    python = folder / "bin" / "python"
    zot = folder / "bin" / "zot"
    zot.write_text(f"#!{python}\nimport sys\nfrom zotd.template.client import zot\nsys.exit(zot())\n")
    zot.chmod(0o755)
    return Installation(folder.name, str(python), str(zot))


def _needed(project: str, extras: Sequence[str]) -> set[str]:
    """The distributions that pip installs for it, without itself."""
    found: set[str] = set()
    waiting = [(project, tuple(extras))]
    while waiting:
        name, wanted = waiting.pop()
        for line in metadata.requires(name) or ():
            requirement = Requirement(line)
            marker = requirement.marker
            key = canonicalize_name(requirement.name)
            if marker is not None and not any(marker.evaluate({"extra": extra}) for extra in wanted or ("",)):
                continue
            if key not in found or requirement.extras:
                found.add(key)
                waiting.append((key, tuple(sorted(requirement.extras))))
    return found


def _link(name: str, site: Path) -> None:
    """Make the files of a distribution importable there."""
    distribution = metadata.distribution(name)
    origin = Path(str(distribution.locate_file("")))
    for place in {tuple(parts) for file in distribution.files or () for parts in _linked(origin, file.parts)}:
        target = site.joinpath(*place)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(origin.joinpath(*place))


def _linked(origin: Path, parts: Sequence[str]) -> Iterator[Sequence[str]]:
    """The part of a file's path that is linked: its package, below any namespace that several distributions share."""
    if parts[0] in {"..", "__pycache__"}:
        return
    depth = 1
    while depth < len(parts) and _is_namespace(origin.joinpath(*parts[:depth])):
        depth += 1
    yield parts[:depth]


def _is_namespace(path: Path) -> bool:
    return path.is_dir() and path.suffix != ".dist-info" and not (path / "__init__.py").exists()


if __name__ == "__main__":
    rig.run(measure)
