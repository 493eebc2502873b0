"""What the permission check of a session works with: its approvals, its jail, and the network by the configuration."""

from collections.abc import Callable
from functools import partial

from zotd.config.current import CurrentConfig
from zotd.core.permissions import Policy
from zotd.core.web_access import WebAccess
from zotd.permissions.authorization_context import AuthorizationContext
from zotd.permissions.host_rules import allowed_hosts
from zotd.proxy import HostDecider
from zotd.sessions.jail_site import jail_site
from zotd.sessions.machine import Machine
from zotd.sessions.session import Session


def authorization_context(
    session: Session, policy: Callable[[], Policy], *, machine: Machine, config: CurrentConfig
) -> AuthorizationContext:
    """Return the context of a session's permission check.

    Args:
        session: its approvals, jail and plan count, and its directory.
        policy: returns rules and mode as they are at the moment.
        machine: brings the proxy, and the notification of absent users.
        config: the configuration that holds now; how unattended approvals end is taken from it once, the network each time.
    """
    approval, jail = config.value.approval, session.jail
    site = partial(jail_site, session, machine, config)
    return AuthorizationContext(
        policy=policy,
        approvals=session.approvals,
        cwd=session.ledger.row.cwd,
        home=session.environment.variables.get("HOME"),
        run=lambda: session.ledger.transcript.run,
        recorded=partial(_recorded, session),
        way=approval.unattended,
        notify=machine.notify,
        ttl_s=approval.ttl_s,
        jail=lambda command: jail.at(site(policy(), once=jail.once.of(command))),
        once=jail.once,
        plans=session.plan,
        hosts=lambda: allowed_hosts(config.value.sandbox).rules,
        outlet=lambda decider: jail.outlet(machine.proxy.outlet(session.id, decider)),
        is_open=lambda: config.value.sandbox.network == "open",
        access=lambda decider: _access(session.id, policy(), decider, machine=machine, config=config),
    )


def _access(
    session: str, policy: Policy, decider: HostDecider, *, machine: Machine, config: CurrentConfig
) -> WebAccess | None:
    is_off = config.value.sandbox.network == "off" and policy.mode != "yolo"
    return None if is_off else machine.proxy.access(session, decider)


def _recorded(session: Session, call: str, digest: str) -> str | None:
    rows = session.ledger.transcript.approvals.values()
    return next((row.id for row in rows if row.call_id == call and row.args_digest == digest), None)
