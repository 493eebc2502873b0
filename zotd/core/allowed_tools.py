"""Which tool calls a command's file allows: its `allowed-tools`, in the words of Claude Code.

    Read, Grep          these tools
    Bash(git add:*)     command lines of which each command begins so
    Edit(src/**)        this tool, for files in a directory or for one file
    mcp__github         all tools of an MCP server
    mcp__github__merge  one of them

An entry that is not understood allows nothing. The list narrows what a session allows and never adds to it
(`docs/decisions/0096-commands-as-files.md`).
"""

import re
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from zotd.core import shell
from zotd.core.permissions import EVERYTHING, SHELL, Action, PermissionQuery, PermissionRule, covers, literally
from zotd.core.records import AllowedTools
from zotd.wire.hooks import CLAUDE_NAMES

WITH_PATH = frozenset({"read", "write", "edit", "grep", "glob"})
"""Tools whose entry may name files."""

_ENTRY = re.compile(r"([\w*-]+)(?:\((.*)\))?", re.DOTALL)
_OURS = {theirs: ours for ours, theirs in CLAUDE_NAMES.items()} | {"MultiEdit": "edit"}

SIMPLE = "write one simple command, or several joined with && ; or |, without redirections, variables and line breaks"


class _Entries(Struct, frozen=True):
    """What a list allows."""

    tools: frozenset[str] = frozenset()
    """Names of tools that may have any arguments; for those of extensions also with `*` at the end."""
    rules: Sequence[PermissionRule] = ()
    """Built-in tools with certain arguments."""

    def allows(self, query: PermissionQuery) -> bool:
        is_named = any(_is_meant(query, name) for name in self.tools)
        return is_named or (query.extension is None and covers(self.rules, query))


def limit_of(allowed: AllowedTools) -> Callable[[PermissionQuery], str]:
    """Return a function that says why a call is not allowed; empty: it is."""
    entries = _parsed(allowed.entries)
    above = None if allowed.above is None else limit_of(allowed.above)

    def refusal(query: PermissionQuery) -> str:
        if entries.allows(query):
            return "" if above is None else above(query)
        named = ", ".join(allowed.entries) or "none"
        hint = ""
        if query.tool == SHELL and any(rule.tool == SHELL for rule in entries.rules):
            is_simple = bool(shell.parts(str(query.args.get("command", ""))))
            hint = "" if is_simple else f"; {SIMPLE}"
        return (
            f"{query.tool} is denied: {_whose(allowed)} allows only these tools: {named}{hint}. "
            "Do it with those, or tell the user what is missing"
        )

    return refusal


def note_of(allowed: AllowedTools) -> str:
    """Return what a model is told beside the prompt of a command, so that it makes no calls in vain."""
    named = ", ".join(allowed.entries) or "none"
    until = "" if allowed.is_agent else f"Until /{allowed.command} is done, only"
    note = f"({until or 'Only'} these tools may be used, with these arguments: {named}.)"
    return note if allowed.above is None else f"{note}\n{note_of(allowed.above)}"


def names_in(entries: Iterable[str]) -> list[str] | None:
    """Return our names of the tools that the entries allow something; None: not all of them are named one by one."""
    parsed = _parsed(entries)
    names = parsed.tools | {rule.tool for rule in parsed.rules}
    return None if any(name.endswith("*") for name in names) else sorted(names)


def has_arguments(entries: Iterable[str]) -> bool:
    """Return whether an entry allows a tool only with certain arguments."""
    return bool(_parsed(entries).rules)


def _whose(allowed: AllowedTools) -> str:
    return f"the agent type {allowed.command}" if allowed.is_agent else f"/{allowed.command}"


def not_understood(entries: Iterable[str]) -> list[str]:
    """Return the entries that allow nothing because zot does not know what they mean."""
    return [entry for entry in entries if _parsed([entry]) == _Entries()]


def _parsed(entries: Iterable[str]) -> _Entries:
    tools: set[str] = set()
    rules: list[PermissionRule] = []
    for entry in entries:
        match = _ENTRY.fullmatch(entry.strip())
        if match is None:
            continue
        name, spec = match[1], (match[2] or "").strip()
        tool = _OURS.get(name, name)
        if match[2] is None or (tool == SHELL and spec in {"*", ":*"}):
            tools.add(_extension_s(name) if name.startswith("mcp__") else tool)
        elif tool == SHELL and spec:
            rules.append(PermissionRule(SHELL, Action.ALLOW, _of_command(spec)))
        elif tool in WITH_PATH and (pattern := _of_path(spec)):
            rules.append(PermissionRule(tool, Action.ALLOW, pattern))
    return _Entries(frozenset(tools), tuple(rules))


def _is_meant(query: PermissionQuery, name: str) -> bool:
    if name == EVERYTHING:
        return True
    if name in CLAUDE_NAMES:  # not the tool of an extension that has taken such a name
        return query.tool == name and query.extension is None
    if name.endswith("*"):
        return query.extension is not None and query.tool.startswith(name.removesuffix("*"))
    return query.tool == name


def _extension_s(name: str) -> str:
    """`mcp__SERVER` and `mcp__SERVER__*` stand for all tools of the server, which are called `SERVER__TOOL`."""
    server, _, tool = name.removeprefix("mcp__").partition("__")
    return f"{server}__{tool or '*'}"


def _of_command(spec: str) -> str:
    if spec.endswith(":*"):
        return f"{literally(spec.removesuffix(':*').rstrip())} *"
    return "*".join(literally(part) for part in spec.split("*"))


def _of_path(spec: str) -> str:
    """Return a pattern for one file, or for everything in a directory; empty: it means something else.

    Other wildcards would allow more than they say: in rules, a `*` matches slashes too.
    """
    start = spec.removesuffix("/**")
    if start.startswith("//"):
        start = f"/{start.lstrip('/')}"
    elif start.startswith(("/", "..")):
        return ""
    start = start.removeprefix("./")
    if not start or re.search(r"[*?\[\]{}!]", start):
        return ""
    return f"{literally(start)}/*" if spec.endswith("/**") else literally(start)
