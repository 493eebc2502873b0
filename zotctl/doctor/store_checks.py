"""Checks of the stored keys and sessions, with the code of `zotd.store` and without a daemon."""

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from zotctl.doctor.findings import Finding, found
from zotctl.doctor.host_checks import Scene
from zotd import config
from zotd.core.ports import StorageError
from zotd.logs.masking import hide
from zotd.providers.catalog.vendors import VENDORS
from zotd.store import credentials
from zotd.store.errors import NewerSchemaError
from zotd.store.logins import FILE as LOGINS
from zotd.store.logins import LoginStore
from zotd.store.opening import FILE, look
from zotd.store.schema import read_at_rest

LOOK_S = 0.7
"""Time limit for the database check, in seconds: 100 MB take 0.1 s. `zotctl verify` checks everything."""

STEPS = 10_000
"""SQLite instructions between checks of the clock; about a millisecond."""


def auth_file(scene: Scene) -> Iterator[Finding]:
    """Check that `auth.json` is usable, if it exists."""
    file = scene.home / "auth.json"
    try:
        credentials.load(file)
    except StorageError as error:
        yield found("auth-file", str(error), f"chmod 600 {file}" if _is_open(file) else f"mv {file} {file}.old")


def keys(scene: Scene) -> Iterator[Finding]:
    """Check that there is a key, or a provider that needs none. Registers the keys it reads for masking."""
    variables = [name for vendor in VENDORS for name in vendor.key_env if scene.env.get(name)]
    for name in variables:
        hide(scene.env[name])
    try:
        stored = credentials.load(scene.home / "auth.json")
        chosen = config.load(scene.home / "config.toml", scene.env).config
    except (StorageError, config.ConfigError):
        return  # reported by other checks
    keyless = {name for vendor in VENDORS if not vendor.key_env for name in (vendor.name, *vendor.aliases)}
    logged_in = os.path.exists(scene.home / LOGINS)
    if not (variables or stored or logged_in or chosen.api_key_command or chosen.provider in keyless):
        yield found("no-key", "no API key is set for any model vendor, in the environment or in auth.json")


def logins(scene: Scene) -> Iterator[Finding]:
    """Check that `logins.json` is usable, if it exists, and that no login in it has ended."""
    file = scene.home / LOGINS
    try:
        known = LoginStore(scene.home, lambda: None, prefers_vault=lambda: False).listed()
    except StorageError as error:
        yield found("login-file", str(error), f"chmod 600 {file}" if _is_open(file) else f"mv {file} {file}.old")
        return
    for vendor, login in known.items():
        if login.ended:
            sentence = f"{vendor} no longer accepts the login ({login.ended})"
            yield found("login-ended", sentence, f"zotctl login {vendor}")


def database(scene: Scene) -> Iterator[Finding]:
    """Check that the database has a known schema, and that it can be reached, or passes SQLite's quick check in `LOOK_S`."""
    url = _url(scene)
    if url is not None:
        yield from _reach(url)
        return
    file = scene.home / FILE
    if not os.path.exists(file):  # also if the home is not accessible, which `host_checks.home` reports
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


def _url(scene: Scene) -> str | None:
    try:
        return config.load(scene.home / "config.toml", scene.env).config.journal.url
    except config.ConfigError:
        return None  # reported by another check


def _reach(url: str) -> Iterator[Finding]:
    try:
        look(url)
    except NewerSchemaError as error:
        yield found("database-newer", str(error))
    except StorageError as error:
        yield found("database-unreachable", str(error), url=url)


def _is_open(file: Path) -> bool:
    """Whether the mode is the problem: others can read the file, or its owner cannot."""
    try:
        mode = os.stat(file).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) and stat.S_IMODE(mode) & 0o477 != 0o400


def _damage(file: Path, problem: str) -> Iterator[Finding]:
    yield found("database-damaged", problem if str(file) in problem else f"{file} is damaged: {problem}")


def _problem(connection: sqlite3.Connection) -> str | None:
    """Return the first problem that SQLite reports; None if there is none, or time ran out."""
    deadline = time.monotonic() + LOOK_S
    connection.set_progress_handler(lambda: time.monotonic() > deadline, STEPS)
    try:
        (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if str(error) == "interrupted":
            return None
        raise
    return None if said == "ok" else str(said).replace("\n", " ")
