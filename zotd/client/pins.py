"""Pins each token to the first host that it was sent to (`docs/remote.md`).

A link, a typing mistake or a stale variable must not send a token to another host. The pins are in
`$ZOT_HOME/hosts.json` (0600) by the token's SHA-256, so that the file reveals no token.
"""

import hashlib
import json
import os
from pathlib import Path

from zotd import paths, private_file
from zotd.client.errors import ClientError

FILE = "hosts.json"
"""Format: `{"v": 1, "tokens": {SHA-256: "host:port"}}`."""


def check(token: str, name: str, home: str) -> None:
    """Return if `token` may be sent to the host `name`; records nothing.

    Raises:
        ClientError: it is pinned to another host, or the file cannot be read.
    """
    try:
        _belongs(Path(home, FILE), token, name)
    except OSError as error:
        raise _unusable(home, error) from error


def record(token: str, name: str, home: str) -> None:
    """Like `check`, but also pin the token to `name`. Call it before the token is sent."""
    path = Path(home, FILE)
    try:
        if _belongs(path, token, name):
            return
        paths.make_private_dir(home)
        with private_file.locked(path):
            if not _belongs(path, token, name):
                tokens = {**_recorded(path), _digest(token): name}
                private_file.write(path, json.dumps({"v": 1, "tokens": tokens}, indent=1).encode())
    except OSError as error:
        raise _unusable(home, error) from error


def _belongs(path: Path, token: str, name: str) -> bool:
    """Return whether the token is pinned to this host; False if it is not pinned at all."""
    owner = _recorded(path).get(_digest(token))
    if owner is not None and owner != name:
        raise ClientError(
            f"the token belongs to {owner} and was not sent to {name}; use a token file of that host,"
            f" or remove the entry from {path}"
        )
    return owner is not None


def _recorded(path: Path) -> dict[str, str]:
    content = private_file.read(path)
    if content is None:
        return {}
    try:
        found: object = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    tokens = found.get("tokens") if isinstance(found, dict) else None
    if not isinstance(tokens, dict) or not all(isinstance(name, str) for name in tokens.values()):
        raise ClientError(f"{path} is damaged, so the host of a token is unknown; repair or remove it")
    return tokens


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _unusable(home: str, error: OSError) -> ClientError:
    return ClientError(f"cannot use {os.path.join(home, FILE)}: {error.strerror}")
