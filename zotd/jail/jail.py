"""What a jail is, whatever keeps it. `zotd.jail.mechanisms` finds one; it is loaded when a session first needs it."""

import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Protocol

from zotd.jail.policy import JailPolicy
from zotd.started_process import Started


class Mechanism(StrEnum):
    """What confines commands."""

    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    SEATBELT = "seatbelt"
    """`sandbox-exec` of macOS."""


MECHANISMS = (Mechanism.SEATBELT,) if sys.platform == "darwin" else (Mechanism.BUBBLEWRAP, Mechanism.LANDLOCK)
"""Those of this system, the best first."""


class NetworkOutlet(Protocol):
    """Connects the commands of one jail to hosts; `zotd.proxy` has one."""

    def admit(self) -> str:
        """Return the path of a socket to which the next command hands over its listener. Raises OSError."""
        ...

    def entrance(self) -> "NetworkEntrance | None":
        """Return the way into a network namespace that was made ahead for the next command; None: there is none."""
        ...


class NetworkEntrance(Protocol):
    """The way into a network namespace in which a proxy listens already, for one command."""

    @property
    def words(self) -> Sequence[str]:
        """The words in front of a command that is to run there; it has the process id that they were started with."""
        ...

    def entered(self, pid: int) -> None:
        """Serve the child `pid`, which was started by `words`, until it ends. It must not be reaped yet."""
        ...

    def close(self) -> None:
        """Give it up; does nothing after `entered`."""
        ...


class Jail(Protocol):
    """Starts commands under a policy. Used on one thread."""

    @property
    def mechanism(self) -> Mechanism:
        """What confines the commands."""
        ...

    @property
    def policy(self) -> JailPolicy:
        """The policy of the next command."""
        ...

    @property
    def limits(self) -> list[str]:
        """What commands can do though the policy should not let them, as clauses that follow "can"."""
        ...

    @property
    def lacks(self) -> list[str]:
        """What commands cannot do though the policy should let them, as clauses that follow "cannot"."""
        ...

    def refresh(self) -> None:
        """Compute the policy again if earlier commands, or the user, have changed what it depends on. Blocks for 0.1 ms.

        Raises:
            JailError: no jail is possible any more.
        """
        ...

    def start(
        self,
        argv: Sequence[str],
        start: Callable[[Sequence[str]], Started],
        outlet: NetworkOutlet | None = None,
    ) -> Started:
        """Call `start` once with the command to run in place of `argv`, such that the process is confined.

        Blocks. `start` may run on another thread, and has to start the process itself.

        Args:
            argv: the command.
            start: starts a process.
            outlet: through which the command reaches hosts, with `Network.PROXIED` in bubblewrap; without one it reaches
                none. Used on this thread.

        Raises:
            JailError: nothing was started, because the command would not be confined.
        """
        ...

    def words(self, outlet: str | None = None) -> list[str]:
        """Return the words in front of a program that run it under the policy of now, for one start by anybody.

        It starts in the directory in which the words are run, and keeps the environment that they get. Blocks for 0.1 ms.

        Args:
            outlet: from `NetworkOutlet.admit`, with `Network.PROXIED` in bubblewrap.

        Raises:
            JailError: the program would not be confined.
        """
        ...

    def close(self) -> None:
        """Free what the jail holds. Commands that run in it stay confined."""
        ...
