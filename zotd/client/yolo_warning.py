"""The warning about the mode `yolo`, in which nothing confines what a model runs."""

import sys
from collections.abc import Mapping

from zotd.client import once
from zotd.client.blocking import Json
from zotd.client.fields import text
from zotd.sanitize import harmless

WARNING = (
    "WARNING: the mode of this session is yolo: every call of the model runs without a question and without a jail, "
    "with all your rights; --mode workspace confines it to the working directory"
)


def yolo_warning(session: Json, *, is_asked_for: bool, env: Mapping[str, str]) -> str:
    """Return the warning for users of this session, in one line; empty if there is none to show.

    Args:
        session: a `SessionInfo` as a dict.
        is_asked_for: a flag of this command has set the mode. Then the warning is shown each time, and otherwise once
            for each home: a configuration is written once, and a script may start thousands of sessions.
        env: this program's environment.
    """
    if text(session, "mode") != "yolo":
        return ""
    is_first = once.is_first("yolo", env)
    return WARNING if is_asked_for or is_first else ""


def warn_of_yolo(session: Json, *, is_asked_for: bool, env: Mapping[str, str]) -> None:
    """Write what `yolo_warning` returns to standard error."""
    if warning := yolo_warning(session, is_asked_for=is_asked_for, env=env):
        sys.stderr.write(f"zot: {harmless(warning)}\n")
