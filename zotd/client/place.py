"""Where the daemon is: on this machine, behind its Unix socket, or on another one, behind its WebSocket (`docs/remote.md`).

Either way a client gets a connected Unix socket that carries lines, and need not know more. What differs besides is said
here: whether a daemon can be started, what a path means, and what of this program's environment goes there.

Loads nothing that `zotctl ping` could not afford: the other machine's part is imported when there is one.
"""

import os
import socket
from collections.abc import Mapping

from zotd import paths
from zotd.client.blocking import CONNECT_S, open_socket
from zotd.client.environment import CA_FILE, HOST, TOKEN_FILE, sendable
from zotd.client.errors import ClientError


class LocalDaemon:
    """The daemon of this machine."""

    is_remote = False

    def __init__(self, path: str, env: Mapping[str, str]) -> None:
        """`path`: of its socket. `env`: what a daemon that is started, and new sessions, run in."""
        self.name = path
        """Name of the place for people, which `of` accepts."""
        self.variables: dict[str, str] | None = sendable(env)
        """Environment of a session's tools; None for the daemon's own."""
        self._env = env

    def open(self, timeout_s: float | None = None) -> socket.socket:
        """Connect as `blocking.open_socket` does, by default within `CONNECT_S`."""
        return open_socket(self.name, CONNECT_S if timeout_s is None else timeout_s)

    def ensure(self) -> socket.socket:
        """Connect as `autostart.ensure` does, which starts a daemon if none is running."""
        from zotd.client.autostart import ensure  # noqa: PLC0415  (costs what `zotctl ping` exists to save)

        return ensure(self.name, self._env)

    def was_killed(self) -> bool:
        """Return whether the daemon was killed (see `autostart.was_killed`); one that was stopped stays stopped."""
        from zotd.client.autostart import was_killed  # noqa: PLC0415

        return was_killed(self.name)

    def may_return(self) -> bool:
        """Whether there is something to wait for after the connection was lost: a daemon, or the next one."""
        from zotd.client.autostart import is_being_started  # noqa: PLC0415

        return os.path.exists(self.name) or is_being_started(self.name)

    def real_path(self, path: str) -> str:
        """The absolute path without symbolic links that the daemon knows `path` by, which need not exist."""
        return os.path.realpath(path)

    def directory(self, path: str | None) -> str | None:
        """The same of a directory for an agent to work in, by default this one. Raises `ClientError`: there is none."""
        real = os.path.realpath(path or ".")
        if not os.path.isdir(real):
            raise ClientError(f"there is no directory {real}")
        return real


class Remote:
    """A daemon on another machine. Nobody starts it from here, and nothing of this environment goes there."""

    is_remote = True
    variables: dict[str, str] | None = None

    def __init__(self, url: str, token_file: str, ca_file: str, home: str) -> None:
        """`token_file`, `ca_file`: paths, or empty. `home`: where it is kept to which host a token belongs."""
        self.name = url
        self._token_file = token_file
        self._ca_file = ca_file
        self._home = home

    def open(self, timeout_s: float | None = None) -> socket.socket:
        """A blocking socket that speaks to the daemon, as `blocking.open_socket` gives it; the caller closes it.

        `timeout_s`: for the whole handshake; None: `handshake.HANDSHAKE_S`. Raises what `remote.open_socket` raises.
        """
        from zotd.client import handshake, remote  # noqa: PLC0415  (0.2 s: aiohttp and TLS)

        limit_s = handshake.HANDSHAKE_S if timeout_s is None else timeout_s
        return remote.open_socket(self.name, self._token_file, self._ca_file, self._home, limit_s=limit_s)

    def ensure(self) -> socket.socket:
        """Connect as `open` does: a daemon on another machine cannot be started from here."""
        return self.open()

    def was_killed(self) -> bool:
        """Return False: only its own machine can tell, and start it again."""
        return False

    def may_return(self) -> bool:
        """Return True: it is unknown whether the daemon was stopped for good."""
        return True

    def real_path(self, path: str) -> str:
        """`path`, which has to be absolute: it is one of the other machine, and not looked at here."""
        if not path.startswith("/"):
            raise ClientError(f'"{path}" is not an absolute path, which {self.name} requires')
        return path

    def directory(self, path: str | None) -> str | None:
        """The same of a directory; None when none is named, for there is no directory that would be meant."""
        return None if path is None else self.real_path(path)


Place = LocalDaemon | Remote


def of(
    env: Mapping[str, str],
    *,
    path: str | None = None,
    host: str | None = None,
    token_file: str | None = None,
    ca_file: str | None = None,
) -> Place:
    """The place that the arguments name: the socket at `path`, else the URL `host`; else the one that `env` names.

    `path` may also be the `name` of any place. A token file and a CA file that are not given are those of `env`.
    """
    if path and "://" not in path:
        return LocalDaemon(path, env)
    url = path or host or env.get(HOST, "")
    if not url:
        return LocalDaemon(paths.socket_path(env), env)
    token_file = token_file or env.get(TOKEN_FILE, "")
    return Remote(url, token_file, ca_file or env.get(CA_FILE, ""), paths.zot_home(env))
