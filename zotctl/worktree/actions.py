"""What `zotctl worktree` does."""

import os
import sys
from dataclasses import asdict

from zotctl import output
from zotctl.worktree.repository import PREFIX, Worktrees
from zotd.client import choosing, place
from zotd.client.blocking import Connection
from zotd.client.errors import NotRunningError
from zotd.client.fields import text
from zotd.sanitize import one_line

CONNECT_S = 0.5
"""Time limit in seconds for a daemon that runs; none is started."""


def create(name: str, base: str) -> int:
    """Create a worktree and print its directory."""
    print(one_line(_here().create(name, base, os.getcwd())))
    return 0


def show(*, as_json: bool) -> int:
    """Print the worktrees, and the sessions in each."""
    worktrees = _here()
    found = [worktrees.worktree(name) for name in worktrees.names()]
    sessions = _sessions() if found else []
    working = {
        one.name: [name for name, cwd in sessions if cwd == one.path or cwd.startswith(one.path + os.sep)]
        for one in found
    }
    if as_json:
        rows = [{**asdict(one), "branch": PREFIX + one.name, "sessions": working[one.name]} for one in found]
        output.print_json({"v": 1, "worktrees": rows})
        return 0
    output.print_table(
        ["NAME", "BASE", "AHEAD", "UNCOMMITTED", "SESSIONS", "DIRECTORY"],
        [
            [
                one.name,
                one.base[:10],
                str(one.ahead),
                "yes" if one.is_dirty else "",
                " ".join(working[one.name]),
                one.path,
            ]
            for one in found
        ],
    )
    return 0


def diff(name: str) -> int:
    """Print the changes of a worktree since its base, as bytes of the files: a patch must stay one."""
    sys.stdout.flush()
    sys.stdout.buffer.write(_here().diff(name).encode(errors="surrogateescape"))
    return 0


def remove(name: str, *, force: bool) -> int:
    """Remove a worktree and its branch."""
    _here().remove(name, force=force)
    return 0


def _here() -> Worktrees:
    return Worktrees(os.getcwd(), os.environ)


def _sessions() -> list[tuple[str, str]]:
    """Return ID and directory of each session; none if no daemon runs. Raises ClientError if one runs and does not answer."""
    try:
        with Connection(place.of(os.environ).open(CONNECT_S)) as connection:
            return [(text(one, "id"), text(one, "cwd")) for one in choosing.sessions(connection, None, None)]
    except NotRunningError:
        return []
