"""The field `sandbox` of an `extension.json` and of an entry in `mcp.json`: what a program wants to be confined to."""

from enum import StrEnum
from typing import Literal

from zotd.wire.base import Frozen


class WorkspaceAccess(StrEnum):
    """What a confined program may do with the files of the workspace."""

    READ = "read"
    WRITE = "write"


class SandboxRequest(Frozen, frozen=True, forbid_unknown_fields=True):
    """What a program may do beside what every confined program may.

    That is: change its data directory, temporary files and caches, and read everything but secrets. An unknown field is an
    error, because a misspelt one would be missed only later.
    """

    workspace: WorkspaceAccess = WorkspaceAccess.READ
    write: tuple[str, ...] = ()
    """Files and directories outside of the workspace that it may change: absolute, or beginning with `~/`."""
    read: tuple[str, ...] = ()
    """Secrets that it may read, such as `~/.aws`: absolute, or beginning with `~/`."""
    network: tuple[str, ...] | Literal["open"] = ()
    """Hosts that it may reach, each as `host`, `*.domain` or `host:port`; `open`: all, without the proxy."""
