"""What a policy is computed from."""

from collections.abc import Mapping
from typing import NamedTuple

from zotd.jail.policy import Network


class JailSite(NamedTuple):
    """Where commands run, for whom, and what a person has decided about them. Two equal sites can have the same jail."""

    cwd: str
    """The working directory, which commands may change. A real path: a link could be changed by them."""
    env: Mapping[str, str]
    """The environment of the user, not one that a command in the jail has set."""
    network: Network
    """What commands may connect to."""
    shown: tuple[str, ...] = ()
    """What may be read although it lies in something hidden; only the user can have made it."""
    granted: tuple[str, ...] = ()
    """Files and directories outside that a person has opened to commands, as absolute paths. One that does not exist, that a
    link leads to, or that `zotd.jail.grants` never opens is left out of the policy."""
    own: tuple[str, ...] = ()
    """Real paths of directories that exist only for the commands, and may be changed although they lie in something hidden.
    The working directory may be one of them."""
    revealed: tuple[str, ...] = ()
    """Hidden files and directories, as absolute paths, that a person has agreed to let commands read. What lies in
    `$ZOT_HOME`, or contains it, stays hidden."""
