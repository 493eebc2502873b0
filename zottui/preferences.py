"""The settings of the terminal client: `[terminal]` in `config.toml`, overridden by environment variables.

Not read with `zotd.config`: its import takes a third of the time until the first paint. That module still validates
them for `zotctl config check` and the daemon's log; here an invalid value counts as absent.
"""

import os
import tomllib
from collections.abc import Mapping
from typing import NamedTuple

from zotd import paths


class Preferences(NamedTuple):
    """The settings and their defaults."""

    theme: str = "auto"
    editing_mode: str = "emacs"
    wrap: str = "words"


def load(env: Mapping[str, str]) -> Preferences:
    """Read the settings for this environment; never raises."""
    table = _table(os.path.join(paths.zot_home(env), "config.toml"))
    wanted = {
        name: env.get(f"ZOT_TERMINAL_{name.upper()}", table.get(name, default))
        for name, default in Preferences._field_defaults.items()
    }
    return Preferences(**{name: value for name, value in wanted.items() if isinstance(value, str)})


def _table(path: str) -> Mapping[str, object]:
    try:
        with open(path, "rb") as file:
            table = tomllib.load(file).get("terminal")
    except (OSError, ValueError):  # missing, unreadable or invalid: start with the defaults; the daemon reports it
        return {}
    return table if isinstance(table, dict) else {}
