"""The location of a daemon: on this machine (Unix socket), or on another one (ssh or WebSocket, `docs/remote.md`).

In both cases a client gets a connected Unix socket that transports lines. The classes here also know what differs:
whether a daemon can be started, how paths are interpreted, and which environment variables are sent.

The remote part is imported only when needed, so that `zotctl ping` stays fast.
"""

import os
import socket
from collections.abc import Mapping

from zotd import paths
from zotd.client.blocking import CONNECT_S, open_socket
from zotd.client.environment import CA_FILE, HOST, TOKEN_FILE, sendable
from zotd.client.errors import ClientError


class LocalDaemon:
    """The daemon on this machine."""

    is_remote = False

    def __init__(self, path: str, env: Mapping[str, str]) -> None:
        """`path` is that of its socket. `env` is the environment of a started daemon and of new sessions."""
        self.name = path
        """Name for people; `of` accepts it."""
        self.variables: dict[str, str] | None = sendable(env)
        """Environment of a session's tools; None for the daemon's own."""
        self._env = env

    def open(self, timeout_s: float | None = None) -> socket.socket:
        """Connect as `blocking.open_socket` does, by default within `CONNECT_S`."""
        return open_socket(self.name, CONNECT_S if timeout_s is None else timeout_s)

    def ensure(self) -> socket.socket:
        """Connect as `autostart.ensure` does, which starts a daemon if none is running."""
        from zotd.client.autostart import ensure  # noqa: PLC0415  (slow to import; `zotctl ping` does without it)

        return ensure(self.name, self._env)

    def was_killed(self) -> bool:
        """Return whether the daemon was killed (see `autostart.was_killed`); one that was stopped stays stopped."""
        from zotd.client.autostart import was_killed  # noqa: PLC0415

        return was_killed(self.name)

    def may_return(self) -> bool:
        """Return whether reconnecting may succeed: the daemon runs, or another one is being started."""
        from zotd.client.autostart import is_being_started  # noqa: PLC0415

        return os.path.exists(self.name) or is_being_started(self.name)

    def real_path(self, path: str) -> str:
        """Return the absolute path without symbolic links by which the daemon knows `path`; it need not exist."""
        return os.path.realpath(path)

    def directory(self, path: str | None) -> str | None:
        """Return the real path of a directory, by default the current one. Raises `ClientError` if there is none."""
        real = os.path.realpath(path or ".")
        if not os.path.isdir(real):
            raise ClientError(f"there is no directory {real}; create it, or give another with --cwd")
        return real


class RemoteDaemon:
    """A daemon on another machine, which gets none of this environment."""

    is_remote = True
    variables: dict[str, str] | None = None

    def __init__(self, name: str) -> None:
        """`name`: for people, and for `of`."""
        self.name = name

    def was_killed(self) -> bool:
        """Return False: only its own machine can tell, and start it again."""
        return False

    def may_return(self) -> bool:
        """Return True: it is unknown whether the daemon was stopped for good."""
        return True

    def real_path(self, path: str) -> str:
        """Return `path`, which must be absolute: it is a path on the other machine and is not checked here."""
        if not path.startswith("/"):
            raise ClientError(f'"{path}" is not an absolute path, which {self.name} requires')
        return path

    def directory(self, path: str | None) -> str | None:
        """Like `real_path`; None if `path` is None, because this program's directory means nothing there."""
        return None if path is None else self.real_path(path)


class OverWebSocket(RemoteDaemon):
    """A daemon at a URL; it cannot be started from here."""

    def __init__(self, url: str, token_file: str, ca_file: str, home: str) -> None:
        """`token_file` and `ca_file` are paths, or empty. `home` has the file with the pinned hosts of tokens."""
        super().__init__(url)
        self._token_file = token_file
        self._ca_file = ca_file
        self._home = home

    def open(self, timeout_s: float | None = None) -> socket.socket:
        """Return a blocking socket like that of `blocking.open_socket`, for the caller to close.

        `timeout_s` is for the whole handshake; None: `handshake.HANDSHAKE_S`. Raises what `remote.open_socket` raises.
        """
        from zotd.client import handshake, remote  # noqa: PLC0415  (0.2 s: aiohttp and TLS)

        limit_s = handshake.HANDSHAKE_S if timeout_s is None else timeout_s
        return remote.open_socket(self.name, self._token_file, self._ca_file, self._home, limit_s=limit_s)

    def ensure(self) -> socket.socket:
        """Connect as `open` does."""
        return self.open()


class OverSsh(RemoteDaemon):
    """A daemon of this user on a machine that ssh can reach."""

    def open(self, timeout_s: float | None = None) -> socket.socket:
        """Connect as `ssh.open_socket` does, by default within `ssh.CONNECT_S`."""
        from zotd.client import ssh  # noqa: PLC0415  (few clients need it)

        limit_s = ssh.CONNECT_S if timeout_s is None else timeout_s
        return ssh.open_socket(ssh.parsed(self.name), starts=False, limit_s=limit_s)

    def ensure(self) -> socket.socket:
        """Connect as `open` does; start a daemon there if none runs."""
        from zotd.client import ssh  # noqa: PLC0415

        return ssh.open_socket(ssh.parsed(self.name), starts=True)


Place = LocalDaemon | OverWebSocket | OverSsh


def of(
    env: Mapping[str, str],
    *,
    path: str | None = None,
    host: str | None = None,
    token_file: str | None = None,
    ca_file: str | None = None,
) -> Place:
    """Return the location that the arguments name: the socket `path`, else the host `host`, else the one in `env`.

    A host is a URL (`wss://`, `ws://`, `ssh://`), or what ssh can connect to.

    `path` may also be the `name` of any location. `token_file` and `ca_file` default to those in `env`.
    """
    if path and "://" not in path:
        return LocalDaemon(path, env)
    url = path or host or env.get(HOST, "")
    if not url:
        return LocalDaemon(paths.socket_path(env), env)
    if url.startswith("ssh://") or "://" not in url:
        return OverSsh(url if "://" in url else f"ssh://{url}")
    token_file = token_file or env.get(TOKEN_FILE, "")
    return OverWebSocket(url, token_file, ca_file or env.get(CA_FILE, ""), paths.zot_home(env))
