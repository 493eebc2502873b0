"""Computes what commands in a jail may do from the working directory and the user's environment."""

import os
import pwd
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from zotd import paths
from zotd.jail.errors import JailError
from zotd.jail.grants import kept_grants
from zotd.jail.places import CACHES, SECRETS, SOCKETS, located
from zotd.jail.policy import JailPolicy, is_in
from zotd.jail.repository import GitPlaces, git_places, steering_git
from zotd.jail.site import JailSite
from zotd.jail.temporary import usual_temporary, with_temporary


def policy_for(site: JailSite) -> JailPolicy:
    """Return the policy for commands at `site`. Blocks for a hundred system calls.

    Raises:
        JailError: its working directory is a place in which a jail would keep nothing, such as the home directory.
    """
    cwd, env = site.cwd, site.env
    if os.path.realpath(cwd) != cwd:
        raise JailError(f"{cwd} leads through a link")
    home = home_of(env)
    revealed = _revealed(site)
    # Also under the name that is used: a link could be replaced by what it leads to.
    secrets = _outermost(_real([*located(SECRETS, env, home), paths.zot_home(env)]))
    hidden = tuple(path for path in secrets if not is_in(path, revealed))
    _check(cwd, os.path.realpath(home), () if is_in(cwd, site.own) else hidden)
    sockets = [*located(SOCKETS, env, home), os.path.dirname(paths.socket_path(env)), _made(paths.outlet_dir(env))]
    if agent := env.get("SSH_AUTH_SOCK"):
        sockets.append(agent)
    shared = [usual_temporary(env), "/dev/shm", *located(CACHES, env, home)]  # noqa: S108  (POSIX semaphores are there)
    closed = _outermost(_real(sockets))
    opened = _outermost(kept_grants(site.granted, cwd=cwd, kept=(*hidden, *closed)))
    git = all_git(cwd, opened)
    usual = _writable([*git.writable, *shared], [cwd, *hidden], os.path.realpath(home))
    return with_temporary(
        JailPolicy(
            cwd=cwd,
            writable=(cwd, *_outermost([*usual, *opened])),
            granted=opened,
            carved=git.carved,
            protected=git.protected,
            hidden=hidden,
            shown=tuple(path for path in _real([*site.shown, *revealed]) if is_in(os.path.dirname(path), hidden)),
            own=site.own,
            sockets=closed,
            network=site.network,
        ),
        env,
        home,
    )


def all_git(cwd: str, granted: Sequence[str]) -> GitPlaces:
    """Return what git needs to commit in `cwd`, and what must not be changed of the repositories in `granted`."""
    own = git_places(cwd)
    if not granted:
        return own
    others = [steering_git(path) for path in granted]
    carved = (*own.carved, *(path for other in others for path in other.carved))
    return GitPlaces(own.writable, carved, (*own.protected, *(path for other in others for path in other.protected)))


def home_of(env: Mapping[str, str]) -> str:
    """Return the home directory of the user; raises JailError if it is unknown."""
    home = env.get("HOME", "")
    if os.path.isabs(home):
        return os.path.normpath(home)
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        raise JailError("the home directory is unknown, so what has to be hidden is unknown too") from None


def _made(folder: str) -> str:
    """Return the directory after making it: while it is absent, it cannot be hidden from commands that then run on."""
    with suppress(OSError):
        paths.make_private_dir(folder)
    return folder


def _check(cwd: str, home: str, hidden: Iterable[str]) -> None:
    if is_in(home, [cwd]):
        what = "is your home directory" if cwd == home else "contains your home directory"
        raise JailError(f"the working directory {what}, and a command that may change all of it is not confined")
    for path in hidden:
        if _overlap(path, cwd):
            raise JailError(f"the working directory {cwd} and {path}, which has to be hidden, contain one another")


def _writable(wanted: Iterable[str], outside_of: Sequence[str], home: str) -> tuple[str, ...]:
    """Return the real paths of those that exist, without any that contains the home directory.

    A variable may have an odd value, such as a home directory as the directory of a cache. A place in a directory that
    is writable anyway is dropped before links are followed: a command may have put the link there.
    """
    real = {_entry(path): os.path.realpath(path) for path in wanted}
    found = []
    for entry, path in real.items():
        others = [root for other, target in real.items() if other != entry for root in (other, target)]
        is_inside = is_in(entry, [*others, *outside_of]) or is_in(path, outside_of)
        if not is_inside and os.path.exists(path) and not is_in(home, [path]):
            found.append(path)
    return _outermost(found)


def _revealed(site: JailSite) -> list[str]:
    own_home = os.path.realpath(paths.zot_home(site.env))
    return [path for path in _real(site.revealed) if not _overlap(path, own_home)]


def _overlap(path: str, other: str) -> bool:
    return is_in(path, [other]) or is_in(other, [path])


def _real(found: Iterable[str]) -> Iterable[str]:
    return map(os.path.realpath, found)


def _entry(path: str) -> str:
    """Return where the entry itself lies: the real path of its directory, and its name."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def _outermost(found: Iterable[str]) -> tuple[str, ...]:
    """Return the paths without those that lie in another one, in the same order."""
    each = dict.fromkeys(found)
    return tuple(path for path in each if each.keys().isdisjoint(_above(path)))


def _above(path: str) -> Iterable[str]:
    """Yield the directories in which a normalised path lies, the nearest first."""
    while (folder := os.path.dirname(path)) != path:
        yield folder
        path = folder
