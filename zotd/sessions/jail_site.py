"""Where the commands of a session work, and what their jail lets them use."""

import os
from collections.abc import Sequence
from pathlib import Path

from zotd.config.current import CurrentConfig
from zotd.config.sections import Config
from zotd.core.permissions import PermissionRule, Policy
from zotd.jail.site import JailSite
from zotd.permissions.file_grants import granted_places, malformed_grants
from zotd.permissions.host_rules import allowed_hosts, malformed
from zotd.permissions.session_jail import NETWORKS
from zotd.sessions.machine import Machine
from zotd.sessions.session import Session


def jail_site(
    session: Session, machine: Machine, config: CurrentConfig, policy: Policy, *, once: Sequence[str]
) -> JailSite:
    """Return the site of a session's next command.

    Args:
        session: its directory, environment and extensions count.
        machine: brings the home of zot.
        config: the configuration that holds now.
        policy: the session's, with the places that people have granted.
        once: places that were granted for this command only.
    """
    home, row = machine.home, session.ledger.row
    shown = [home / "skills", home / "out" / row.id]
    if session.extensions is not None:
        # Only what is installed there: a directory of the workspace could be a link that a command has made.
        shown += [path for path in map(Path, session.extensions.skills()) if path.is_relative_to(home)]
    return JailSite(
        cwd=row.cwd,
        env={**session.environment.variables, **machine.places},
        network=NETWORKS[config.value.sandbox.network],
        shown=tuple(map(os.fspath, shown)),
        granted=(*granted_places(policy, session.environment.variables.get("HOME")), *once),
    )


def jail_problems(config: Config, rules: Sequence[PermissionRule]) -> list[str]:
    """Return what is wrong with the configuration of the jail, as sentences for people."""
    return [*allowed_hosts(config.sandbox).problems, *malformed(rules), *malformed_grants(rules)]
