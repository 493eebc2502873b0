"""A server's resources: two tools for the model, and mentions `@SERVER:URI` in prompts."""

import asyncio
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from mcp import MCPError
from mcp.types import Resource, ResourceTemplate

from zotd.bridges.mcp.connection import McpConnection
from zotd.bridges.mcp.results import content_frames, resource_frame, tool_error, words_in
from zotd.bridges.mcp.tools import offered_names
from zotd.sdk.pipe import Frame

LISTED = 200
"""Most resources in one answer; the model can ask for some of them."""

MENTIONABLE = 500
"""Most resources that completion is told of; the host takes no more."""

MENTIONS = 10
"""Most mentions of a prompt that are read."""

MENTIONED_S = 4.0
"""How long a server may take for all of them; a prompt waits for it, and the host not longer than 5 s."""

MENTIONED_CHARS = 18_000
"""Longest text of all mentioned resources; the host takes 20,000."""

READ = "read_resource"
LIST = "list_resources"

_CLOSING = re.compile(r"</(?=\s*resource)", re.IGNORECASE)
"""What would let a text end before its end."""


class ServerResources:
    """The resources of one server."""

    def __init__(self, server: str) -> None:
        self._server = server
        # A word such as `me@srv:1` is none, and a sentence may end behind it.
        self._mention = re.compile(rf"(?<![\w@])@{re.escape(server)}:([A-Za-z][A-Za-z0-9+.-]*:\S*[^\s.,;:!?)\]}}'\"`])")
        self._tools: Mapping[str, str] = {}
        """`READ` and `LIST`, by their names for the model."""

    def registrations(self, taken: Collection[str], *, is_used: bool) -> dict[str, Frame]:
        """Return the tools by name, none unless `is_used`; `taken` are names that the server's own tools have."""
        names = offered_names(self._server, [READ, LIST]) if is_used else {}
        self._tools = {name: own for own, name in names.items() if name not in taken}
        return {name: self._registration(name, own) for name, own in self._tools.items()}

    def tool(self, name: str) -> str | None:
        """Return `READ` or `LIST` if the model knows it as `name`."""
        return self._tools.get(name)

    async def call(self, connection: McpConnection, key: str, tool: str, args: Mapping[str, object]) -> Frame:
        """Answer the call `key` of one of the tools.

        Raises:
            MCPError, ValueError: the server has refused it, or its answer is invalid.
        """
        if tool == READ:
            uri = args.get("uri")
            if not isinstance(uri, str) or not uri:
                return tool_error(key, "`uri` is missing")
            found = await connection.client.read_resource(uri)
            return content_frames(key, [resource_frame(one) for one in found.contents])
        wanted = args.get("contains")
        lines = await self._lines(connection, wanted.casefold() if isinstance(wanted, str) else "")
        return content_frames(key, [{"type": "text", "text": "\n".join(lines) or "there are no such resources"}])

    def mentionable(self, resources: Sequence[Resource]) -> Frame:
        """Build the frame with what a prompt can mention of these resources."""
        texts = {f"@{self._server}:{one.uri}": one for one in resources[:MENTIONABLE]}
        usable = {text: one for text, one in texts.items() if self._mention.fullmatch(text)}
        items = [
            {"text": text[1:], "detail": " ".join((one.title or one.name).split())} for text, one in usable.items()
        ]
        return {"type": "mentions", "items": items}

    def mentions(self, prompt: str) -> list[str]:
        """Return the URIs of the resources that a prompt mentions, without duplicates."""
        return list(dict.fromkeys(self._mention.findall(prompt)))[:MENTIONS]

    async def mentioned(self, connection: McpConnection, uris: Sequence[str]) -> str:
        """Read these resources; return them as text for the model, with why one could not be read."""
        room = MENTIONED_CHARS // len(uris)
        texts = [f"{uri} was not read in time" for uri in uris]

        async def read(place: int, uri: str) -> None:
            try:
                texts[place] = self._shown(uri, words_in(await connection.client.read_resource(uri)), room)
            except (MCPError, RuntimeError, ValueError) as error:
                texts[place] = f"{uri} could not be read: {error}"[:room]

        try:
            async with asyncio.timeout(MENTIONED_S), asyncio.TaskGroup() as reads:
                for place, uri in enumerate(uris):
                    reads.create_task(read(place, uri))
        except TimeoutError:
            pass  # said of each that is missing
        return "\n\n".join(texts)

    def _shown(self, uri: str, text: str, room: int) -> str:
        more = ""
        if len(text) > room:
            text, more = text[:room], f"\n[{len(text) - room:,} more characters]"
        return f'<resource server="{self._server}" uri="{uri}">\n{_CLOSING.sub("<", text)}{more}\n</resource>'

    async def _lines(self, connection: McpConnection, wanted: str) -> list[str]:
        found = [*map(_line, await connection.resources()), *map(_template_line, await connection.resource_templates())]
        lines = [line for line in found if wanted in line.casefold()]
        if len(lines) > LISTED:
            lines[LISTED:] = [f"and {len(lines) - LISTED} more; `contains` selects among them"]
        return lines

    def _registration(self, name: str, tool: str) -> Frame:
        about, schema = _TOOLS[tool]
        frame: Frame = {"type": "register_tool", "name": name, "description": about(self._server), "schema": schema}
        return {**frame, "replay": "safe", "parallel": True}


def _read_about(server: str) -> str:
    return f"Reads a resource of the MCP server {server}. A mention @{server}:URI in a prompt means the resource with this URI."


def _list_about(server: str) -> str:
    return (
        f"Lists the resources of the MCP server {server}: their URIs and what they are. In a template, replace {{…}}."
    )


_TOOLS: Mapping[str, tuple[Callable[[str], str], Mapping[str, object]]] = {
    READ: (
        _read_about,
        {"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]},
    ),
    LIST: (
        _list_about,
        {
            "type": "object",
            "properties": {"contains": {"type": "string", "description": "only those whose line contains this text"}},
        },
    ),
}
"""What the model reads of each tool, and its arguments."""


def _line(resource: Resource) -> str:
    return _joined(resource.uri, _details(resource))


def _template_line(template: ResourceTemplate) -> str:
    return _joined(template.uri_template, _details(template))


def _details(one: Resource | ResourceTemplate) -> Iterator[str]:
    yield one.title or one.name
    if one.mime_type:
        yield one.mime_type
    if one.description:
        yield one.description


def _joined(uri: str, details: Iterator[str]) -> str:
    return f"{uri} ({', '.join(' '.join(detail.split()) for detail in details)})"
