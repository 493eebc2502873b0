"""How the daemon has one process run many bridges (`zotd.exthost.bridge_process`, `zotd.bridges.mcp.bridge_server`).

    daemon ── START n, with a stdin, stdout and stderr ──> process ── a bridge: its first line is a `BridgeRequest`
           ── END n: as SIGTERM; KILL n: as SIGKILL ─────>
           <── "n code": the bridge n has ended ──────────

Orders come over the stdin of the process, which is a socket; reports leave over its stdout. When its stdin ends, so does it.
"""

import json
import struct
from enum import IntEnum

from msgspec import Struct

MESSAGE = struct.Struct("<BI")
"""An `BridgeOrder` and the number of the bridge that it is for."""

STREAMS = 3
"""Descriptors that come with `BridgeOrder.START`."""

REPORT_BYTES = 64
"""Longest report, a line."""


class BridgeOrder(IntEnum):
    """What is to become of a bridge."""

    START = 1
    END = 2
    KILL = 3


class BridgeRequest(Struct, frozen=True):
    """What a bridge would get from the kernel if it were a process of its own."""

    arguments: tuple[str, ...]
    env: dict[str, str]
    cwd: str

    def packed(self) -> bytes:
        """Return it as a line. ASCII, because variables and paths may contain bytes that are not UTF-8."""
        return json.dumps([self.arguments, self.env, self.cwd]).encode() + b"\n"

    @classmethod
    def unpacked(cls, line: bytes) -> "BridgeRequest":
        """Return the request of a line that `packed` has made."""
        arguments, env, cwd = json.loads(line)
        return cls(tuple(arguments), env, cwd)


def report(number: int, code: int) -> bytes:
    """Return the line that reports the end of a bridge, with its exit code or minus a signal's number."""
    return f"{number} {code}\n".encode()


def read_report(line: bytes) -> tuple[int, int]:
    """Return number and code of a report.

    Raises:
        ValueError: it is not one.
    """
    number, code = line.split()
    return int(number), int(code)
