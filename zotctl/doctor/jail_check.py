"""The check of the jail: which mechanism confines the commands of a model on this machine, and what it lets them do."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from zotctl.doctor.findings import Finding, found
from zotctl.doctor.host_checks import Scene
from zotd import config
from zotd.client.blocking import Json
from zotd.jail import MECHANISMS, Jail, JailError, Network
from zotd.jail.mechanisms import find_jail
from zotd.jail.site import JailSite


def jail(scene: Scene, seen: list[Json]) -> Iterator[Finding]:
    """Try the mechanisms in an empty directory, and add to `seen` what `zotctl doctor` prints of the jail.

    A row has `mechanism` (`none` if there is none), `can_although_it_should_not` (clauses that follow "can") and `reason`,
    why there is no better one.
    """
    best, reason = _best(scene)
    mechanism = "none" if best is None else best.mechanism.value
    seen.append({"mechanism": mechanism, "can_although_it_should_not": best.limits if best else [], "reason": reason})
    if best is not None:
        best.close()
    elif _mode(scene) == "workspace":
        yield found("no-jail", f"no jail is possible on this machine, so sessions ask before each change: {reason}")


def described(row: Json) -> Iterator[str]:
    """Yield what users read about a row of `jail`, in lines."""
    if row["mechanism"] == "none":
        return
    yield f"commands of the model run in a jail of {row['mechanism']}"
    if row["reason"]:
        limits = row["can_although_it_should_not"]
        assert isinstance(limits, list)
        yield f"    it lets them {', '.join(map(str, limits))}"
        yield f"    a complete one needs bubblewrap (apt install bubblewrap), and here: {row['reason']}"


def _best(scene: Scene) -> tuple[Jail | None, str]:
    """Return the jail of an empty directory, and why there is no better one."""
    reasons: list[str] = []
    # Not the current directory: in the home no jail is possible, whatever the machine has.
    with tempfile.TemporaryDirectory(prefix="zot-doctor-") as made:
        folder = os.path.realpath(made)
        env = {**scene.env, "ZOTD_OUTLETS": f"{folder}/outlets"}  # so that the user's own directory is not made
        work = f"{folder}/work"
        os.mkdir(work)
        for mechanism in MECHANISMS:
            try:
                return find_jail(JailSite(work, env, Network.OFF), [mechanism]), "; ".join(reasons)
            except JailError as error:
                reasons.append(str(error))
    return None, "; ".join(reasons)


def _mode(scene: Scene) -> str:
    try:
        return config.load(Path(scene.home, "config.toml"), scene.env).config.approval.mode
    except config.ConfigError:  # reported by another check
        return ""
