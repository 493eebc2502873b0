"""How the user wants this terminal: `[terminal]` of `config.toml`, and environment variables over it.

Read here and not with `zotd.config`, whose import alone takes a third of what the first paint may. It checks them all
the same, for `zotctl config check` and for the daemon's log; what is wrong here counts as absent.
"""

import os
import tomllib
from collections.abc import Mapping
from typing import NamedTuple

from zotd import paths


class Preferences(NamedTuple):
    """What can be set."""

    theme: str = "auto"
    editing_mode: str = "emacs"
    wrap: str = "words"


def load(env: Mapping[str, str]) -> Preferences:
    """Those of this environment."""
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
    except (OSError, ValueError):
        return {}
    return table if isinstance(table, dict) else {}
