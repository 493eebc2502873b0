"""What is in the home: keys and sessions. Read with the store's own code, and without a daemon."""

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from zotctl.database import DATABASE
from zotctl.doctor.findings import Finding, found
from zotctl.doctor.host_checks import Scene
from zotd import config
from zotd.core.ports import StorageError
from zotd.logs.masking import hide
from zotd.providers.catalog.vendors import VENDORS
from zotd.store import credentials
from zotd.store.errors import NewerSchemaError
from zotd.store.schema import read_at_rest

LOOK_S = 0.7
"""How long the database is looked at: 0.1 s for 100 MB on a good disk. `zotctl verify` looks at all of it."""

STEPS = 10_000
"""Instructions of SQLite between two looks at the clock: a millisecond or so."""


def auth_file(scene: Scene) -> Iterator[Finding]:
    """`auth.json` can be used, if there is one."""
    file = scene.home / "auth.json"
    try:
        credentials.load(file)
    except StorageError as error:
        yield found("auth-file", str(error), f"chmod 600 {file}" if _is_open(file) else f"mv {file} {file}.old")


def keys(scene: Scene) -> Iterator[Finding]:
    """Some model can be asked, as far as can be told from here. Hides the keys that it sees."""
    variables = [name for vendor in VENDORS for name in vendor.key_env if scene.env.get(name)]
    for name in variables:
        hide(scene.env[name])
    try:
        stored = credentials.load(scene.home / "auth.json")
        chosen = config.load(scene.home / "config.toml", scene.env).config
    except (StorageError, config.ConfigError):
        return  # other checks have said so
    keyless = {name for vendor in VENDORS if not vendor.key_env for name in (vendor.name, *vendor.aliases)}
    if not (variables or stored or chosen.api_key_command or chosen.provider in keyless):
        yield found("no-key", "no API key is set for any model vendor, in the environment or in auth.json")


def database(scene: Scene) -> Iterator[Finding]:
    """The database is one of ours, and its pages are whole, as far as a moment's look can tell."""
    file = scene.home / DATABASE
    if not os.path.exists(file):  # in a home that may not be entered, neither; `host_checks.home` says so
        return
    try:
        problem = read_at_rest(file, _problem)
    except NewerSchemaError as error:
        yield found("database-newer", str(error))
    except (StorageError, sqlite3.Error) as error:
        yield from _damage(file, str(error))
    else:
        if problem is not None:
            yield from _damage(file, problem)


def _is_open(file: Path) -> bool:
    """Whether its mode is what is wrong: others may read it, or its owner may not."""
    try:
        mode = os.stat(file).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) and stat.S_IMODE(mode) & 0o477 != 0o400


def _damage(file: Path, problem: str) -> Iterator[Finding]:
    yield found("database-damaged", problem if str(file) in problem else f"{file} is damaged: {problem}")


def _problem(connection: sqlite3.Connection) -> str | None:
    """What SQLite says of the pages first; None: nothing, or it needs more time than there is."""
    deadline = time.monotonic() + LOOK_S
    connection.set_progress_handler(lambda: time.monotonic() > deadline, STEPS)
    try:
        (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if str(error) == "interrupted":
            return None
        raise
    return None if said == "ok" else str(said).replace("\n", " ")
