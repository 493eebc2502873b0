"""A call as it is judged, and what comes of that."""

from dataclasses import dataclass

from zotd.core.call_jail import CallJail
from zotd.core.permissions import PermissionQuery
from zotd.exthost.guards import GuardVerdict
from zotd.jail import Jail, NetworkOutlet
from zotd.permissions.call_hosts import CallHosts
from zotd.permissions.preview import Paths
from zotd.permissions.session_jail import JailedCall


@dataclass(frozen=True, slots=True)
class CallQuestion:
    """A call as rules, mode and jail see it."""

    query: PermissionQuery
    paths: Paths
    jail: Jail | None
    """The jail that the call keeps to; None: it is not confined."""

    hosts: CallHosts | None = None
    """Which hosts its command may reach, if that is limited."""
    outlet: NetworkOutlet | None = None
    """Through which it reaches them."""

    def confined(self) -> JailedCall | None:
        """Return what the call is confined to once it is allowed: also the path that it was asked about, if it was."""
        if self.jail is None:
            return None
        allowed = tuple(self.paths.real) if self.query.border else ()
        return JailedCall(self.jail, self.jail.policy, allowed, self.hosts, self.outlet)


@dataclass(slots=True)
class Clearance(GuardVerdict[dict[str, object]]):
    """Whether a call may run, with which arguments, and what it is confined to."""

    jail: CallJail | None = None
    """None: the call is not confined."""

    def confine(self, question: CallQuestion) -> None:
        """Record what the call is confined to once it is allowed."""
        self.jail = question.confined()
