"""MCP servers as extensions: each entry of an `mcp.json` is a process of `zotd.bridges.mcp` (`docs/mcp.md`).

What is started is told by the file, the server's name and a digest of its entry. The bridge reads the file again by
itself, so that no argument list, which every user of the machine can see, holds more than that, and refuses an entry
that is not of that digest.
"""

import stat
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import UNSET

from zotd.exthost.manifest import Manifest
from zotd.wire.mcp import McpServer, ServerError, fingerprint, read_servers, variables

PREFIX = "mcp-"
"""Makes a server's name an extension's, and its log `ext-mcp-NAME.log`."""

MAX_BYTES = 1024 * 1024
"""Longest file that is read, as for manifests."""

# -E -P: neither PYTHON* variables nor the directory it runs in, which is a project of the user, decide what is imported.
BRIDGE = (sys.executable, "-E", "-P", "-m", "zotd.bridges.mcp")


def servers(path: Path, *, directory: Path) -> tuple[list[Manifest], dict[Path | str, str]]:
    """The servers that the file `path` names, in its order, and a sentence for each that cannot be used.

    `directory` is where they run: the working directory of the sessions. The sentences are by the name of the server,
    or by `path` if they are about all of the file. No file: nothing. Blocks for a file read.
    """
    try:
        found = read_servers(_content(path))
    except FileNotFoundError:
        return [], {}
    except OSError as error:
        return [], {path: f"{path} cannot be read: {(error.strerror or str(error)).lower()}"}
    except ServerError as error:
        return [], {path: f"{path}: {error}"}
    manifests = [_manifest(path, name, one, directory) for name, one in found.items() if isinstance(one, McpServer)]
    faults = {name: one for name, one in found.items() if isinstance(one, ServerError)}
    return manifests, {name: f'{path}: the server "{name[:80]}" is not used: {fault}' for name, fault in faults.items()}


def entries(path: Path) -> Mapping[str, McpServer | ServerError]:
    """What the file says, by name; nothing when it cannot be used. Blocks for a file read."""
    try:
        return read_servers(_content(path))
    except (OSError, ServerError):
        return {}


def _content(path: Path) -> bytes:
    if not stat.S_ISREG(path.stat().st_mode):
        raise ServerError("it is not a file")  # opening a pipe would wait for a writer
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ServerError("it is over 1 MiB")
    return data


def _manifest(path: Path, name: str, server: McpServer, directory: Path) -> Manifest:
    return Manifest(
        directory=directory,
        name=PREFIX + name,
        argv=(*BRIDGE, str(path.absolute()), name, fingerprint(server)),
        description=f"MCP server from {path}",
        is_enabled=not server.disabled,
        env=variables(server),
        file=path,
        call_limit_s=None if server.timeout_s is UNSET else server.timeout_s,
        is_patient=True,
    )
