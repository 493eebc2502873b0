"""The temporary directory of commands that cannot have the user's, because the user's contains the home directory.

It is `run/tmp` in `$ZOT_HOME`, shared by the jails of this home, as the usual one is by all programs. Nothing else of
`$ZOT_HOME` can be seen through it. What is in it is removed when a jail is made and it has not been changed for `KEPT_DAYS`.
"""

import os
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress

from msgspec.structs import replace

from zotd import paths
from zotd.jail.policy import JailPolicy, is_in

KEPT_DAYS = 10
"""As long as systems keep what is in `/tmp`."""

_DAY_S = 86_400


def usual_temporary(env: Mapping[str, str]) -> str:
    """Return the temporary directory of programs with this environment."""
    given = env.get("TMPDIR", "")
    return given if os.path.isabs(given) else "/tmp"  # noqa: S108  (as `tempfile` does)


def with_temporary(policy: JailPolicy, env: Mapping[str, str], home: str) -> JailPolicy:
    """Return the policy, with a temporary directory of its own if the usual one contains `home`; it is made."""
    if not is_in(os.path.realpath(home), [os.path.realpath(usual_temporary(env))]):
        return policy
    folder = os.path.join(os.path.realpath(paths.zot_home(env)), "run", "tmp")
    with suppress(OSError):
        paths.make_private_dir(folder)
    if os.path.realpath(folder) != folder or not os.path.isdir(folder):
        return policy
    return replace(policy, own=(*policy.own, folder), temporary=folder)


def sweep(policy: JailPolicy) -> None:
    """Remove what has been in the policy's own temporary directory for long. Blocks; does nothing without one."""
    if not policy.temporary:
        return
    limit = time.time() - KEPT_DAYS * _DAY_S
    with suppress(OSError), os.scandir(policy.temporary) as entries:
        for entry in entries:
            _remove_if_older(entry, limit)


def _remove_if_older(entry: os.DirEntry[str], limit: float) -> None:
    with suppress(OSError):
        if entry.stat(follow_symlinks=False).st_mtime >= limit:
            return
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)  # follows no links
        else:
            os.unlink(entry.path)
