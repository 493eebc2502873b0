"""MCP servers as extensions: each entry of an `mcp.json` is a program of `zotd.bridges.mcp` (`docs/mcp.md`).

The bridge gets the file, the server's name and a digest of its entry. It reads the file itself, because argument lists are
visible to every user of the machine and entries may contain secrets. It refuses an entry with another digest.
"""

import stat
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import UNSET

from zotd.exthost import sandbox_check
from zotd.exthost.manifest import Manifest
from zotd.wire.mcp import McpServer, ServerError, fingerprint, read_servers, variables

PREFIX = "mcp-"
"""Prefix that turns a server's name into an extension's; its log is `ext-mcp-NAME.log`."""

LOGINS = "mcp-logins.json"
"""Name of the file of logins to servers in `ZOT_HOME`; `zotd.oauth.server_logins` reads it."""

MAX_BYTES = 1024 * 1024
"""Longest file that is read, the same as for manifests."""

# -E -P: PYTHON* variables and the working directory, which is a project, must not decide what is imported.
BRIDGE = (sys.executable, "-E", "-P", "-m", "zotd.bridges.mcp")


def servers(path: Path, *, directory: Path, logins: Path | None = None) -> tuple[list[Manifest], dict[Path | str, str]]:
    """Read the servers of the file `path`, in its order, and a sentence for each entry that cannot be used.

    The sentences are keyed by the name of the server, or by `path` if they concern the whole file. A missing file has no
    servers. The servers run in `directory`, the working directory of the sessions; `logins` is the file of
    logins to servers. Blocks for a file read.
    """
    try:
        found = read_servers(_content(path))
    except FileNotFoundError:
        return [], {}
    except OSError as error:
        return [], {path: f"{path} cannot be read: {(error.strerror or str(error)).lower()}"}
    except ServerError as error:
        return [], {path: f"{path}: {error}"}
    checked = {name: _checked(one) for name, one in found.items()}
    manifests = [
        _manifest(path, name, one, directory=directory, logins=logins)
        for name, one in checked.items()
        if isinstance(one, McpServer)
    ]
    faults = {name: one for name, one in checked.items() if isinstance(one, ServerError)}
    return manifests, {name: f'{path}: the server "{name[:80]}" is not used: {fault}' for name, fault in faults.items()}


def entries(path: Path) -> Mapping[str, McpServer | ServerError]:
    """Return the entries of the file by name; empty if the file is unusable. Blocks for a file read."""
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


def _checked(server: McpServer | ServerError) -> McpServer | ServerError:
    if isinstance(server, ServerError) or server.sandbox is UNSET:
        return server
    fault = sandbox_check.fault(server.sandbox)
    return server if fault is None else ServerError(fault)


def _manifest(path: Path, name: str, server: McpServer, *, directory: Path, logins: Path | None) -> Manifest:
    # Words that confine the server may follow, so there is an argument for the logins in any case.
    arguments = [path.absolute(), name, fingerprint(server), logins or ""]
    return Manifest(
        directory=directory,
        name=PREFIX + name,
        argv=(*BRIDGE, *map(str, arguments)),
        host_argv=tuple(BRIDGE),
        description=f"MCP server from {path}",
        is_enabled=not server.disabled,
        env=variables(server),
        file=path,
        sandbox=None if server.sandbox is UNSET else server.sandbox,
        call_limit_s=None if server.timeout_s is UNSET else server.timeout_s,
        # MCP servers report progress during long calls, which other clients of MCP treat as a sign of life too.
        is_patient=True,
    )
