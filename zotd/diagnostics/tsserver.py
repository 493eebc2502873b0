"""Errors of TypeScript up to version 6, which its language server cannot be asked for in the usual way.

It publishes lists without a version, and none if the list is the same, so nobody could tell when an edit has been checked.
Requests to the compiler's own server, `tsserver`, are passed on, and are answered in the order of the changes.
"""

from collections.abc import Sequence

from zotd.diagnostics.connection import RpcConnection, ServerRefusedError
from zotd.diagnostics.error_book import FoundError, one_line
from zotd.diagnostics.messages import LspMessage
from zotd.wire.jsonrpc import RpcErrorCode

COMMANDS = ("syntacticDiagnosticsSync", "semanticDiagnosticsSync")
"""The requests that return errors."""

ERROR = "error"
"""Category of an error; others are warnings and suggestions."""


class ExecuteCommand(LspMessage, frozen=True):
    """Has a server carry out a command of its own."""

    command: str
    arguments: Sequence[object]


class TsPosition(LspMessage, frozen=True):
    """A place in a text, counted from 1."""

    line: int
    offset: int


class TsDiagnostic(LspMessage, frozen=True):
    """Something that the compiler has found."""

    start: TsPosition
    text: str
    category: str
    code: int = 0


class TsAnswer(LspMessage, frozen=True):
    """The answer to one of `COMMANDS`."""

    success: bool = False
    body: Sequence[TsDiagnostic] = ()


async def ask_errors(connection: RpcConnection, path: str, *, within_s: float) -> list[FoundError]:
    """Return the errors of a file as the server has it. Raises as `RpcConnection.ask`."""
    found: list[FoundError] = []
    for command in COMMANDS:
        params = ExecuteCommand("typescript.tsserverRequest", (command, {"file": path}))
        answer = await connection.ask("workspace/executeCommand", params, TsAnswer, within_s=within_s)
        if not answer.success:
            raise ServerRefusedError(RpcErrorCode.INTERNAL, f"tsserver does not answer `{command}`")
        found += [_error(path, one) for one in answer.body if one.category == ERROR]
    return found


def _error(path: str, found: TsDiagnostic) -> FoundError:
    return FoundError(path, found.start.line, found.start.offset, one_line(found.text), f"typescript {found.code}")
