"""Joins the daemons of a database that have the same key, and tells them where this one is reached."""

from pathlib import Path

from zotd import fleet_key
from zotd.api.fleet.address import problem_of
from zotd.api.fleet.fleet import Fleet
from zotd.config import ConfigError, FleetSection
from zotd.fleet_key import FleetKey, FleetKeyError
from zotd.sessions.manager import Spawn
from zotd.store.members import FleetMembers


def joined(
    home: Path, settings: FleetSection, *, certificate: str, members: FleetMembers, spawn: Spawn
) -> Fleet | None:
    """Return the fleet; None if this daemon has no key, or no other daemon uses its journal.

    `certificate`: see `Fleet`.

    Raises:
        ConfigError: the key or the address cannot be used; the message is one sentence.
    """
    if settings.address is not None and (problem := problem_of(settings.address)):
        raise ConfigError(f"fleet.address {settings.address} {problem}")
    path = home / fleet_key.FILE if settings.key_file is None else Path(settings.key_file)
    if not members.home or (settings.key_file is None and not path.exists()):
        return None
    try:
        key = FleetKey.read(str(path))
    except FleetKeyError as error:
        raise ConfigError(f"fleet: {error}") from error
    return Fleet(key, members, certificate, spawn)
