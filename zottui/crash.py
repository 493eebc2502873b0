"""Saves the traceback of a bug to a file, so that the terminal shows one sentence instead of a screenful."""

import os
from collections.abc import Mapping
from pathlib import Path

from zotd import paths, private_file


def kept(error: BaseException, env: Mapping[str, str]) -> str:
    """Save the traceback to `$ZOT_HOME/logs/terminal.log`, replacing the previous one, and return a message about it."""
    import traceback  # noqa: PLC0415  (takes 2 ms, and only a crash needs it)

    what = "".join(traceback.format_exception_only(error)).strip()  # the exception's line alone, for the screen
    path = os.path.join(paths.zot_home(env), "logs", "terminal.log")
    try:
        paths.check_private_dir(os.path.dirname(path))
        private_file.write(Path(path), "".join(traceback.format_exception(error)).encode(errors="backslashreplace"))
    except (OSError, paths.UnsafePathError) as problem:
        return f"this is a bug in zot: {what} (could not save the traceback: {problem}); the session is not affected"
    return f"this is a bug in zot, the session is not affected: {what}; please report it with the contents of {path}"
