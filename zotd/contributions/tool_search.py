"""A tool that finds tools: what the model gets in place of a long list of tools of MCP servers.

Every request has the list, so hundreds of tools would cost tens of thousands of tokens in each. Tools that were found are listed
from the next step on.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from zotd.core.ports import Replay, Tool, ToolContext, ToolOutcome
from zotd.exthost.mcp import PREFIX
from zotd.exthost.tools import ExtensionTool
from zotd.tools.shared import BuiltinTool, text_outcome

NAME = "find_tools"

FOUND = 8
"""Most tools that one search adds to the list."""

NAMED = 40
"""Most further names in a result."""

ABOUT_CHARS = 200
"""How much of a description is shown with a name; the model reads all of it in the list."""

SERVERS = 20
"""Most servers that the description of the tool names."""

_WORD = re.compile(r"[^\W_]+")


class FindToolsArgs(msgspec.Struct, frozen=True):
    """Arguments of `find_tools`."""

    query: Annotated[str, Meta(description="What the tool should do, in a few words, or the name of a tool")]


def unlisted(tools: Sequence[ExtensionTool], limit: int) -> list[ExtensionTool]:
    """Return the tools that are not listed because MCP servers have more than `limit` of them; empty: all are."""
    of_servers = [tool for tool in tools if tool.extension.startswith(PREFIX) and tool.exposure != "deferred"]
    is_taken = any(tool.spec.name == NAME for tool in tools)  # by an extension, which then could not be called
    return of_servers if len(of_servers) > limit and not is_taken else []


def finder(tools: Sequence[ExtensionTool], activate: Callable[[Sequence[str]], None]) -> Tool:
    """Return the tool that searches `tools`; `activate` is called with the names of those that were found."""

    async def find(args: FindToolsArgs, context: ToolContext) -> ToolOutcome:  # noqa: ARG001  (the signature of tools)
        found = _ranked(args.query, tools)
        activate([tool.spec.name for tool in found[:FOUND]])
        return text_outcome(
            _words(found) if found else f"no tool has these words; there are tools of {_servers(tools)}"
        )

    return BuiltinTool(
        FindToolsArgs,
        find,
        name=NAME,
        description=(
            f"Finds tools that are not in your list, of these MCP servers (how many each has): {_servers(tools)}. Search "
            "before you say that you cannot do something. You can call what it finds."
        ),
        parallel=True,
        replay=Replay.SAFE,
    )


def _ranked(query: str, tools: Sequence[ExtensionTool]) -> list[ExtensionTool]:
    """Return the tools that have words of the query in their name or description, best first."""
    words = set(_WORD.findall(query.casefold()))
    scored = [(_score(words, tool), tool) for tool in tools]
    # `sorted` keeps the order of equal ones, which is that of the servers.
    return [tool for score, tool in sorted(scored, key=lambda one: -one[0]) if score]


def _score(words: set[str], tool: ExtensionTool) -> int:
    """Count the words: one in the name says more than one in the description, a whole word more than a part of one."""
    name, about = tool.spec.name.casefold(), tool.spec.description.casefold()
    of_name, of_about = set(_WORD.findall(name)), set(_WORD.findall(about))
    return sum(8 * (word in of_name) + 4 * (word in name) + 2 * (word in of_about) + (word in about) for word in words)


def _words(found: Sequence[ExtensionTool]) -> str:
    lines = [f"{tool.spec.name}: {' '.join(tool.spec.description.split())[:ABOUT_CHARS]}" for tool in found[:FOUND]]
    further = [tool.spec.name for tool in found[FOUND : FOUND + NAMED]]
    if further:
        lines.append(f"These fit less and were not added; search for their names: {', '.join(further)}")
    return "\n".join(["You can call these now:", *lines])


def _servers(tools: Sequence[ExtensionTool]) -> str:
    counts = Counter(tool.extension.removeprefix(PREFIX) for tool in tools)
    named = [f"{name} ({count})" for name, count in list(counts.items())[:SERVERS]]
    more = [f"{len(counts) - SERVERS} more"] if len(counts) > SERVERS else []
    return ", ".join([*named, *more])
