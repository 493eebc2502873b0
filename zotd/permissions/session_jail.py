"""The jail of a session in the mode `workspace`: made when a call first needs it, kept, and closed with the session.

SessionJail ──at(site)──> Jail ──for one call──> JailedCall ──> the tool, which opens files and starts commands by it
     └──> none is possible: users are told why, once, and calls are asked about as in the mode `ask`
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from msgspec import Struct

from zotd.core.permissions import SHELL
from zotd.jail import Jail, JailError, JailPolicy, Mechanism, Network, NetworkOutlet
from zotd.jail.policy import is_in
from zotd.jail.site import JailSite
from zotd.paths import UnsafePathError
from zotd.permissions.call_hosts import CallHosts
from zotd.permissions.file_grants import OnceGrants
from zotd.started_process import Started

FIND_S = 10.0
"""Longest wait for a jail to be made, which takes 15 ms: directories may be on a file system that does not answer."""

READING = frozenset({"read", "grep", "glob"})
"""Built-in tools that keep to what the jail allows to be read."""

WRITING = frozenset({"write", "edit"})
"""Built-in tools that keep to what the jail allows to be changed."""

NETWORKS = {"hosts": Network.PROXIED, "open": Network.OPEN, "off": Network.OFF}
"""What the values of `sandbox.network` mean."""

KEPT_MAX = 4
"""Most jails of a session at once; each is a descriptor with Landlock."""


class FoundJail(NamedTuple):
    """What was found for a site."""

    site: JailSite
    jail: Jail | None
    reason: str
    """Why there is no jail."""


class JailedCall(Struct, frozen=True):
    """What one call is confined to; satisfies `core.call_jail.CallJail`."""

    jail: Jail
    policy: JailPolicy
    """As it was when the call was allowed."""
    allowed: tuple[str, ...] = ()
    """Real paths beyond the jail that a person, or a rule, has allowed for this call."""
    hosts: CallHosts | None = None
    """Which hosts it may reach, if it has an outlet."""
    outlet: NetworkOutlet | None = None
    """Through which its command reaches hosts, if the network is proxied; None: it reaches none."""

    def may_read(self, path: str) -> bool:
        """See `CallJail`."""
        return self.policy.may_read(path) or is_in(path, self.allowed)

    def may_write(self, path: str) -> bool:
        """See `CallJail`."""
        return self.policy.may_write(path) or is_in(path, self.allowed)

    def start(self, argv: Sequence[str], start: Callable[[Sequence[str]], Started]) -> Started:
        """See `CallJail`. A search of what the jail hides, which a person has allowed, runs outside of it."""
        return start(argv) if self.allowed else self.jail.start(argv, start, self.outlet)

    def ended(self) -> Sequence[str]:
        """See `CallJail`."""
        from zotd.jail.repository import set_aside_pointers  # noqa: PLC0415  (loaded when the jail was made)

        return set_aside_pointers(self.policy)

    def refused(self, output: str) -> Sequence[str]:
        """See `CallJail`. What the proxy has refused is known, and not read from the output: many programs hide it."""
        from zotd.jail.refusals import refused  # noqa: PLC0415  (2 ms, on the thread of the first command)

        return [*refused(output, self.jail.policy), *(() if self.hosts is None else self.hosts.refused)]

    def closed_places(self, output: str) -> Sequence[str]:
        """See `CallJail`."""
        from zotd.jail.refusals import closed_places  # noqa: PLC0415  (as above)

        return closed_places(output, self.jail.policy)


class SessionJail:
    """The jail of one session, with one form of it for each set of grants. Used on one event loop."""

    def __init__(self, told: Callable[[str], None]) -> None:
        """`told` shows users a sentence about the session."""
        self.once = OnceGrants()
        """What commands may change when they are run again; it ends with the session's time in memory."""
        self._told = told
        self._found: FoundJail | None = None
        self._kept: list[FoundJail] = []
        """What was found, the newest at the end: a call that is about to start may hold a jail that is not the newest."""
        self._finding = asyncio.Lock()
        self._network_trouble = ""
        """Why there was no outlet, as users were told last."""

    @property
    def status(self) -> str | None:
        """The name of the mechanism in use, or `none: ` and the reason; None: no call has needed one yet."""
        if self._found is None:
            return None
        return f"none: {self._found.reason}" if self._found.jail is None else self._found.jail.mechanism.value

    async def at(self, site: JailSite) -> Jail | None:
        """Return the jail of commands at `site`, with its policy as it is now.

        None: none is possible. Users are told why, once for each reason.
        """
        async with self._finding:
            found = self._found
            if found is None or found.site != site:
                made = (one for one in self._kept if one.site == site and one.jail is not None)
                found = self._use(next(made, None) or await _found(site))
        if found.jail is not None:
            try:
                found.jail.refresh()
            except JailError as error:
                self._kept.remove(found)
                found.jail.close()
                found = self._use(FoundJail(site, None, str(error)))
        return found.jail

    async def outlet(self, opened: Awaitable[NetworkOutlet]) -> NetworkOutlet | None:
        """Return the outlet. None: there can be none; users are told why, once for each reason."""
        try:
            return await opened
        except (UnsafePathError, OSError) as error:
            trouble = f"the proxy cannot be started, so commands of this session have no network: {error}"
        if trouble != self._network_trouble:
            self._network_trouble = trouble
            self._told(trouble)
        return None

    def close(self) -> None:
        """Free the jail. Commands that run in it stay confined."""
        self._found = None
        self._close_but(0)

    def _close_but(self, newest: int) -> None:
        while len(self._kept) > newest:
            oldest = self._kept.pop(0)
            if oldest.jail is not None:
                oldest.jail.close()

    def _use(self, found: FoundJail) -> FoundJail:
        last, self._found = self._found, found
        self._kept = [*(one for one in self._kept if one is not found), found]
        self._close_but(KEPT_MAX)
        if found.jail is None and (last is None or last.reason != found.reason):
            self._told(f"nothing can be confined here, so calls are asked about as in the mode ask: {found.reason}")
        if found.jail is not None and (last is None or last.jail is None) and (note := network_note(found.jail)):
            self._told(note)
        return found


def border_of(tool: str, policy: JailPolicy, paths: Sequence[str]) -> str:
    """Return what a call of a built-in tool would do beyond the jail, as a clause after "it would"; empty: nothing.

    `paths`: the real paths that it leads to.
    """
    if tool in READING:
        hidden = [path for path in paths if not policy.may_read(path)]
        return f"read {hidden[0]}, which the jail of this session hides" if hidden else ""
    if tool in WRITING:
        outside = [path for path in paths if not policy.may_write(path)]
        return f"change {outside[0]}, outside of what the jail of this session lets calls change" if outside else ""
    return ""


def network_note(jail: Jail) -> str:
    """Return what users have to know of a jail that cannot tell hosts apart, as a sentence; empty: nothing."""
    if jail.policy.network is not Network.PROXIED or jail.mechanism is Mechanism.BUBBLEWRAP:
        return ""
    if jail.mechanism is Mechanism.SEATBELT:
        return (
            "the sandbox of macOS cannot tell hosts apart, so commands of this session have no network; choose [sandbox]"
            ' network = "open" or "off" in config.toml'
        )
    has_network = "use the network" in jail.limits
    return (
        "bubblewrap does not work here, and Landlock cannot tell hosts apart: commands of this session"
        f" {'can reach every host' if has_network else 'have no network but UDP'}; install bubblewrap (`zotctl sandbox show"
        ' --mechanism bubblewrap` says what is wrong), or choose [sandbox] network = "open" or "off" in config.toml'
    )


def keeps_to_jail(tool: str) -> bool:
    """Return whether this built-in tool runs in the jail, or asks it about each path."""
    return tool == SHELL or tool in READING or tool in WRITING


async def no_jail(command: str) -> Jail | None:
    """Return the jail of a session that can have none."""
    del command
    return None


async def _found(site: JailSite) -> FoundJail:
    try:
        async with asyncio.timeout(FIND_S):
            jail = await asyncio.to_thread(_find, site)
    except JailError as error:
        return FoundJail(site, None, str(error))
    except TimeoutError:
        return FoundJail(site, None, f"no jail could be made within {FIND_S:g} s; a file system does not answer")
    return FoundJail(site, jail, "")


def _find(site: JailSite) -> Jail:
    from zotd.jail.caches import make_caches  # noqa: PLC0415  (10 ms that no start of a daemon has to wait for)
    from zotd.jail.mechanisms import find_jail  # noqa: PLC0415

    make_caches(site.cwd, site.env)
    return find_jail(site)
