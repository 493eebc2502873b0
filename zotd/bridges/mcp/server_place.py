"""Where a server runs, and the processes it consists of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from zotd.process.exit import ExitWatch


class ServerGroup:
    """The process group of a server, as long as there is one."""

    def __init__(self) -> None:
        self._watch: ExitWatch | None = None

    def begin(self, watch: ExitWatch) -> None:
        """The group's leader was started."""
        self._watch = watch

    def end(self) -> None:
        """The leader is about to be reaped."""
        self._watch = None

    def signal(self, number: int) -> None:
        """Send a signal to the group, if there is one."""
        if self._watch is not None:
            self._watch.signal_group(number)


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """What a server gets from its bridge."""

    env: Mapping[str, str]
    """Environment of the bridge, of which it gets a part."""
    cwd: str
    """Directory from which its own is named; empty: that of this process."""
    stderr: int | None
    """Descriptor of its stderr; None: that of this process."""
    words: Sequence[str] = ()
    """Stand in front of its command, and confine it."""
    group: ServerGroup = field(default_factory=ServerGroup)
