"""Terminals that an editor shows and we fill: the output of `bash` as it comes, with its colours. Without I/O.

    tool_call          content: the terminal     _meta: terminal_info
    tool_call_update                             _meta: terminal_output, then terminal_exit

The command runs in the daemon as always. Only for editors that announce `terminal_output`.
"""

import re

from zotd.wire.acp import CallMeta, TerminalContent, TerminalExit, TerminalInfo, TerminalOutput

TOOL = "bash"

_END = re.compile(r"^\[(?:exit (\d+)|[^\n]+)\]  Took [\d.]+s$", re.MULTILINE)
"""The line of a result after the output: how the command ended."""

_HEAD = re.compile(r"\A\$ .*?\n\n", re.DOTALL)
"""The command, with which a result begins."""


def content(call: str) -> TerminalContent:
    """Return the terminal of a call as part of its content."""
    return TerminalContent(call)


def opened(call: str, cwd: str) -> CallMeta:
    """Return what makes the editor show a terminal for a call."""
    return CallMeta(terminal_info=TerminalInfo(call, cwd))


def grown(call: str, text: str) -> CallMeta:
    """Return more output of a call."""
    return CallMeta(terminal_output=TerminalOutput(call, text))


def ended(call: str, shown: str, result: str) -> CallMeta:
    """Return the end of a call with this result: the output that was not `shown`, what was remarked about it, and its exit code."""
    ends = [*_END.finditer(result)]
    if not ends:  # it was not run, or is interrupted: a sentence says so
        rest, code = result, None
    else:
        end = ends[-1]
        code = int(end[1]) if end[1] is not None else None
        output = "" if shown else _HEAD.sub("", result[: end.start()])
        rest = output + (result[end.end() :].strip("\n") if code is not None else result[end.start() :])
    if rest and shown and not shown.endswith("\n"):
        rest = f"\n{rest}"
    return CallMeta(
        terminal_output=TerminalOutput(call, rest) if rest else None,
        terminal_exit=TerminalExit(call, code, None),
    )
