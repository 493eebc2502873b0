"""The place of this daemon, which is the name of what has its directories, and a label by which other daemons know it."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from zotd.config import Config
from zotd.config.sections import FleetSection
from zotd.sessions.manager import Spawn
from zotd.sessions.planner import Planner
from zotd.store.members import PLACE


def place_name(fleet: FleetSection) -> str:
    """Return `fleet.place`, or the host name."""
    return fleet.place or os.uname().nodename


def fleet_labels(fleet: FleetSection) -> Sequence[str]:
    """Return `fleet.labels`, and the label of the place."""
    return (*fleet.labels, f"{PLACE}{place_name(fleet)}")


def connect_files(planner: Planner, config: Config, home: Path, spawn: Spawn) -> None:
    """Have the files of sessions follow them to other machines, if that is configured."""
    url = config.fleet.workspaces
    if url is None:
        return
    from zotd.workspace.workspace_sync import SyncSettings, WorkspaceSync  # noqa: PLC0415  (few daemons share files)

    keeper = planner.keeper
    settings = SyncSettings(
        url=url,
        place=place_name(config.fleet),
        home=str(home),
        file_bytes=lambda: keeper.settings.max_file_mb * 1_000_000,
        spawn=spawn,
    )
    keeper.connect(partial(WorkspaceSync, settings))
