"""What commands in a jail may do; `zotd.jail.computing` computes it.

The description is the same for every mechanism; `zotd.jail.landlock` and `zotd.jail.bubblewrap` say how much of it the
kernel keeps for them.
"""

import os
from collections.abc import Iterable
from enum import Enum

from msgspec import Struct


class Network(Enum):
    """What commands may connect to."""

    OPEN = "open"
    """Everything that the machine can reach."""
    PROXIED = "proxied"
    """The hosts that a proxy connects them to."""
    OFF = "off"
    """Nothing but their own loopback."""


class JailPolicy(Struct, frozen=True):
    """What a command may do. All paths are absolute and real; those that must exist are named."""

    cwd: str
    """The working directory; writable."""
    writable: tuple[str, ...]
    """Directories and files that exist and may be changed, `cwd` first. What is not in them can only be read."""
    granted: tuple[str, ...]
    """Those of `writable` that a person has opened to commands; no link leads to them."""
    carved: tuple[str, ...]
    """Git directories that exist and may be changed, except for `protected`."""
    protected: tuple[str, ...]
    """Files and directories in `writable` or `carved` that exist and must not be changed: git runs what they name."""
    hidden: tuple[str, ...]
    """Files and directories, which may not exist, whose content must not be read or changed."""
    shown: tuple[str, ...]
    """Files and directories in `hidden`, which may not exist, whose content may be read all the same."""
    own: tuple[str, ...]
    """Directories that may be read and changed although they may lie in something hidden."""
    sockets: tuple[str, ...]
    """Directories, which may not exist, in which programs of the user or of the system listen."""
    network: Network
    temporary: str = ""
    """The temporary directory, one of `own`, that commands get as `TMPDIR`; empty: they keep that of the user."""

    @property
    def variables(self) -> tuple[tuple[str, str], ...]:
        """What is changed in the environment of commands."""
        return (("TMPDIR", self.temporary),) if self.temporary else ()

    @property
    def above_hidden(self) -> tuple[str, ...]:
        """The directories above hidden paths, which may not exist, `/` first."""
        found = {os.sep: None}
        for path in self.hidden:
            above = os.path.dirname(path)
            while above not in found:
                found[above] = None
                above = os.path.dirname(above)
        return tuple(found)

    def may_write(self, path: str) -> bool:
        """Return whether the file with this real path may be changed."""
        if is_in(path, self.own):
            return True
        is_open = is_in(path, (*self.writable, *self.carved))
        return is_open and not is_in(path, (*self.protected, *self.hidden))

    def may_read(self, path: str) -> bool:
        """Return whether the file with this real path may be read."""
        return not is_in(path, self.hidden) or is_in(path, (*self.shown, *self.own))


def is_in(path: str, roots: Iterable[str]) -> bool:
    """Return whether a normalised path is one of `roots` or lies in one."""
    return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)
