"""A jail: a policy, and the mechanism of this machine that keeps it.

find_jail ──> bubblewrap, if it works here
         └──> Landlock, if the kernel has it
         └──> on macOS: Seatbelt, if it passes a trial
         └──> JailError, which says why none does
"""

import os
import shutil
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing

from msgspec.structs import replace

from zotd import paths
from zotd.jail import bubblewrap, confined, landlock, seatbelt
from zotd.jail.computing import all_git, policy_for
from zotd.jail.errors import JailError
from zotd.jail.grants import is_direct
from zotd.jail.jail import MECHANISMS, Jail, Mechanism, NetworkOutlet
from zotd.jail.policy import JailPolicy, Network
from zotd.jail.site import JailSite
from zotd.jail.temporary import sweep
from zotd.started_process import Started


class _CurrentPolicy:
    """The policy for a working directory, as it is now."""

    def __init__(self, site: JailSite) -> None:
        self._site = site
        self.policy: JailPolicy = policy_for(site)
        self._above = self.policy.above_hidden
        self._state = self._look()

    def refresh(self) -> bool:
        """Look again, and return whether directories above hidden files, or the policy, have changed. 0.1 ms."""
        if self._look() != self._state:
            self.policy = policy_for(self._site)
            self._above = self.policy.above_hidden
            self._state = self._look()
            return True
        # An earlier command may have made a repository, or hooks.
        git = all_git(self.policy.cwd, self.policy.granted)
        if (git.carved, git.protected) == (self.policy.carved, self.policy.protected):
            return False
        self.policy = replace(self.policy, carved=git.carved, protected=git.protected)
        return True

    def _look(self) -> list[tuple[int, int] | bool | None]:
        # Of what is shown only whether it exists: what is made in it later is covered by the same rule.
        shown = map(os.path.lexists, self.policy.shown)
        return [*map(_stamp, self._above), *shown, *map(is_direct, self._site.granted)]


class BubblewrapJail:
    """Starts commands with `bwrap`."""

    mechanism = Mechanism.BUBBLEWRAP

    def __init__(self, site: JailSite) -> None:
        """Find `bwrap` on the PATH of this process, and try it. Blocks for 15 ms. Raises JailError."""
        program = shutil.which(bubblewrap.PROGRAM)
        if program is None:
            raise JailError("bubblewrap (bwrap) is not installed")
        self._program = os.path.abspath(program)
        self._current = _CurrentPolicy(site)
        bubblewrap.check(self.policy, self._program)

    @property
    def policy(self) -> JailPolicy:
        """See `Jail`."""
        return self._current.policy

    @property
    def limits(self) -> list[str]:
        """See `Jail`."""
        return bubblewrap.limits(self.policy)

    @property
    def lacks(self) -> list[str]:
        """See `Jail`."""
        return bubblewrap.lacks(self.policy)

    def refresh(self) -> None:
        """See `Jail`."""
        self._current.refresh()

    def start(
        self,
        argv: Sequence[str],
        start: Callable[[Sequence[str]], Started],
        outlet: NetworkOutlet | None = None,
    ) -> Started:
        """See `Jail`."""
        self.refresh()
        if outlet is None or self.policy.network is not Network.PROXIED:
            return start([*bubblewrap.command_prefix(self.policy, self._program), *argv])
        if (entrance := outlet.entrance()) is not None:
            with closing(entrance):
                prefix = bubblewrap.command_prefix(self.policy, self._program, is_entered=True)
                process = start([*entrance.words, *prefix, *argv])
                entrance.entered(process.pid)
                return process
        return start([*bubblewrap.command_prefix(self.policy, self._program, outlet.admit()), *argv])

    def words(self, outlet: str | None = None) -> list[str]:
        """See `Jail`."""
        self.refresh()
        proxied = outlet if self.policy.network is Network.PROXIED else None
        return bubblewrap.command_prefix(self.policy, self._program, proxied, starts_in="")

    def close(self) -> None:
        """See `Jail`."""


class LandlockJail:
    """Starts commands on a thread that has restricted itself: a child inherits the domain of the thread that starts it.

    The thread lives for one command. `preexec_fn` would force a `fork`, which costs 2 to 20 ms, and run Python code
    between `fork` and `exec`; the thread costs 0.1 ms.
    """

    mechanism = Mechanism.LANDLOCK

    def __init__(self, site: JailSite) -> None:
        """Build the rules. Blocks for 3 ms. Raises JailError."""
        self._abi = landlock.landlock_abi()
        if not self._abi:
            raise JailError("the kernel has no Landlock")
        self._current = _CurrentPolicy(site)
        self._ruleset = landlock.LandlockRuleset(self.policy, self._abi)

    @property
    def policy(self) -> JailPolicy:
        """See `Jail`."""
        return self._current.policy

    @property
    def limits(self) -> list[str]:
        """See `Jail`."""
        return landlock.limits(self.policy, self._abi)

    @property
    def lacks(self) -> list[str]:
        """See `Jail`."""
        return landlock.lacks(self.policy, self._abi)

    def refresh(self) -> None:
        """See `Jail`."""
        if self._current.refresh():
            stale, self._ruleset = self._ruleset, landlock.LandlockRuleset(self.policy, self._abi)
            stale.close()

    def start(
        self,
        argv: Sequence[str],
        start: Callable[[Sequence[str]], Started],
        outlet: NetworkOutlet | None = None,  # noqa: ARG002  (there is no network that could be had through it)
    ) -> Started:
        """See `Jail`."""
        self.refresh()
        return _on_thread(self._ruleset, lambda: start([*_setting(self.policy), *argv]))

    def words(self, outlet: str | None = None) -> list[str]:  # noqa: ARG002  (as above)
        """See `Jail`."""
        self.refresh()
        for program in (sys.executable, __file__):
            if self.policy.may_write(os.path.realpath(program)):
                raise JailError(f"{os.path.realpath(program)} is in a directory that the program may change")
        return confined.words(self.policy)

    def close(self) -> None:
        """See `Jail`."""
        self._ruleset.close()


class SeatbeltJail:
    """Starts commands with `sandbox-exec`."""

    mechanism = Mechanism.SEATBELT

    def __init__(self, site: JailSite, program: str = seatbelt.PROGRAM) -> None:
        """Try `program` with the policy of the site. Blocks for about 50 ms. Raises JailError."""
        self._program = program
        self._current = _CurrentPolicy(site)
        seatbelt.check(self.policy, program, paths.zot_home(site.env))

    @property
    def policy(self) -> JailPolicy:
        """See `Jail`."""
        return self._current.policy

    @property
    def limits(self) -> list[str]:
        """See `Jail`."""
        return list(seatbelt.LIMITS)

    @property
    def lacks(self) -> list[str]:
        """See `Jail`."""
        return seatbelt.lacks(self.policy)

    def refresh(self) -> None:
        """See `Jail`."""
        self._current.refresh()

    def start(
        self,
        argv: Sequence[str],
        start: Callable[[Sequence[str]], Started],
        outlet: NetworkOutlet | None = None,  # noqa: ARG002  (as with Landlock)
    ) -> Started:
        """See `Jail`."""
        return start([*self.words(), *argv])

    def words(self, outlet: str | None = None) -> list[str]:  # noqa: ARG002  (as above)
        """See `Jail`."""
        self.refresh()
        return [*_setting(self.policy), *seatbelt.command_prefix(self.policy, self._program)]

    def close(self) -> None:
        """See `Jail`."""


_JAILS: Mapping[Mechanism, Callable[[JailSite], Jail]] = {
    Mechanism.BUBBLEWRAP: BubblewrapJail,
    Mechanism.LANDLOCK: LandlockJail,
    Mechanism.SEATBELT: SeatbeltJail,
}


def find_jail(site: JailSite, among: Sequence[Mechanism] = MECHANISMS) -> Jail:
    """Return the best jail that works here. Blocks for up to `bubblewrap.PROBE_S`, usually for 15 ms.

    Args:
        site: what the policy is computed from. With Landlock commands have no network where it is proxied, as `Jail.lacks`
            says.
        among: the mechanisms to try, in this order.

    Raises:
        JailError: none works, with the reason of each.
    """
    sweep(policy_for(site))  # raises for a directory that no mechanism can confine
    reasons = []
    for mechanism in among:
        try:
            return _JAILS[mechanism](site)
        except JailError as error:
            reasons.append(str(error))
    raise JailError("; ".join(reasons))


def _setting(policy: JailPolicy) -> list[str]:
    """Return the words in front of a command that change its environment; mostly none."""
    changed = [f"{name}={value}" for name, value in policy.variables]
    return ["/usr/bin/env", *changed] if changed else []


def _on_thread(ruleset: landlock.LandlockRuleset, work: Callable[[], Started]) -> Started:
    results: list[Started] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            ruleset.restrict_thread()
            results.append(work())
        except BaseException as error:  # noqa: BLE001  (raised by the caller, on its own thread)
            failures.append(error)

    thread = threading.Thread(target=run, name="jail")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns
