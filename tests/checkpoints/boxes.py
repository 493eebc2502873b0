"""Machines with homes of their own and a shared bare repository. A session's directory has another path on each."""

import asyncio
import os
from pathlib import Path

from tests.checkpoints.conftest import git
from zotd.checkpoints.judging import RecordingLimits
from zotd.workspace.workspace_sync import SyncSettings, WorkspaceSync


class Site:
    """One machine: a place, a home, and a directory for sessions."""

    def __init__(self, root, name, url):
        self.name = name
        self.work = root / name / "work"
        self.work.parent.mkdir(parents=True)
        self._home, self._url = root / name / "zot", url
        self.env = {"HOME": str(root / name), "PATH": os.environ["PATH"]}
        self.told: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []

    def sync(self, session="s_1", place="", url=""):
        settings = SyncSettings(
            url=url or self._url,
            place=place or self.name,
            home=str(self._home),
            file_bytes=lambda: RecordingLimits().file_bytes,
            spawn=lambda name, work: self.tasks.append(asyncio.get_running_loop().create_task(work, name=name)),
        )
        return WorkspaceSync(
            settings,
            session,
            str(self.work),
            environment=lambda: self.env,
            told=self.told.append,
            baseline=lambda: None,
        )

    def files(self):
        """The content of each file but those of `.git`, and the targets of links."""
        found = {}
        for place in sorted(self.work.rglob("*")):
            name = str(place.relative_to(self.work))
            if name.partition("/")[0] == ".git" or (place.is_dir() and not place.is_symlink()):
                continue
            found[name] = f"-> {place.readlink()}" if place.is_symlink() else place.read_text()
        return found


def boxes(root: Path):
    """Two machines."""
    shared = root / "shared.git"
    git(root, "init", "-q", "--bare", str(shared))
    return Site(root, "box1", str(shared)), Site(root, "box2", str(shared))


async def worked(box, session="s_1", **files):
    """A session at this box that has written files, and pushed them."""
    box.work.mkdir(exist_ok=True)
    sync = box.sync(session)
    await sync.arrive()
    for name, content in files.items():
        (box.work / name).write_text(content)
    await sync.flush()
    return sync
