"""Which host each token belongs to: the first that it was sent to, and no other (`docs/remote.md`).

A link, a typing mistake or a variable that is left over must not carry a token to a stranger. Kept in
`$ZOT_HOME/hosts.json` (0600), by the token's SHA-256: the file tells nobody a token.
"""

import hashlib
import json
import os
from pathlib import Path

from zotd import paths, private_file
from zotd.client.errors import ClientError

FILE = "hosts.json"
"""`{"v": 1, "tokens": {SHA-256: "host:port"}}`."""


def check(token: str, name: str, home: str) -> None:
    """Return when `token` may be sent to the host `name`; nothing is recorded.

    Raises:
        ClientError: it belongs to another one, or what is recorded cannot be read.
    """
    try:
        _belongs(Path(home, FILE), token, name)
    except OSError as error:
        raise _unusable(home, error) from error


def record(token: str, name: str, home: str) -> None:
    """The same; from now on `token` belongs to `name`. Call it before the token is sent."""
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
    """Whether it was sent there before; False when it was sent nowhere yet."""
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
