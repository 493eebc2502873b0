"""What a user is told once for each home: a mark below `$ZOT_HOME/seen` remembers it."""

import os
from collections.abc import Mapping

from zotd import paths


def is_first(what: str, env: Mapping[str, str]) -> bool:
    """Return whether this is the first call for `what`, a file name, in the home of `env`.

    True again if the mark could not be written.
    """
    mark = os.path.join(paths.zot_home(env), "seen", what)
    if os.path.exists(mark):
        return False
    try:
        paths.check_private_dir(os.path.dirname(mark))
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:  # another client was first
        return False
    except (OSError, paths.UnsafePathError):
        return True
    return True
