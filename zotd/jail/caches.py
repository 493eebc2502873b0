"""Makes caches that are missing: a command in a jail could not, because it may not change the directory above them."""

import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress

from zotd.jail.computing import home_of, policy_for
from zotd.jail.places import CACHE_FILES, CACHE_PROGRAMS, located
from zotd.jail.policy import JailPolicy, Network
from zotd.jail.site import JailSite


def make_caches(cwd: str, env: Mapping[str, str]) -> list[str]:
    """Make the missing caches of programs that are on the user's PATH, and return their paths. Blocks for 1 ms.

    A cache is made, with mode 0700, only below a directory of the user that commands in the jail of `cwd` cannot change, so
    no link that a command has put there is followed. One that cannot be made is left out.

    Args:
        cwd: the working directory, a real path.
        env: the environment of the user.

    Raises:
        JailError: no jail is possible in `cwd`.
    """
    policy = policy_for(JailSite(cwd, env, Network.OFF))
    return [
        path for path, is_file in _wanted(env) if not os.path.lexists(path) and _make(path, policy, is_file=is_file)
    ]


def _wanted(env: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
    """Yield the caches that programs of the user have, and whether they are files."""
    home, path = home_of(env), env.get("PATH", os.defpath)
    installed = {name: not name or shutil.which(name, path=path) is not None for name in {*CACHE_PROGRAMS.values()}}
    places = tuple(place for place, program in CACHE_PROGRAMS.items() if installed[program])
    yield from zip(located(places, env, home), (place in CACHE_FILES for place in places), strict=True)


def _make(path: str, policy: JailPolicy, *, is_file: bool) -> bool:
    above, missing = os.path.split(path)
    names = [missing]
    while not os.path.lexists(above):
        above, missing = os.path.split(above)
        names.insert(0, missing)
    real = os.path.realpath(above)
    if policy.may_write(real) or not policy.may_read(real):
        return False  # commands make it themselves, or it would be hidden
    with suppress(OSError):
        folder = os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            status = os.fstat(folder)
            if status.st_uid != os.getuid() or status.st_mode & stat.S_IWOTH:
                return False
            for name in names[:-1]:
                folder = _entered(folder, name)
            if is_file:
                os.close(os.open(names[-1], os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder))
            else:
                os.mkdir(names[-1], 0o700, dir_fd=folder)
            return True
        finally:
            os.close(folder)
    return False


def _entered(folder: int, name: str) -> int:
    """Make a directory in `folder`, which is closed, and return a descriptor of it. If that fails, `folder` stays open."""
    os.mkdir(name, 0o700, dir_fd=folder)
    inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    os.close(folder)
    return inner
