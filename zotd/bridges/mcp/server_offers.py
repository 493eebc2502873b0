"""What a server offers at the moment, as it is registered with the host: tools, prompts as commands, resources as tools."""

import logging
from collections.abc import Callable, Mapping

from mcp import MCPError
from mcp.types import Prompt, Tool

from zotd.bridges.mcp import prompts
from zotd.bridges.mcp.connection import McpConnection
from zotd.bridges.mcp.resources import ServerResources
from zotd.bridges.mcp.tools import offered_names, registration
from zotd.sdk.pipe import Frame

log = logging.getLogger(__name__)


class ServerOffers:
    """The registrations of one server."""

    def __init__(self, server: str, send: Callable[[Frame], None]) -> None:
        """`send` passes frames to the host."""
        self._server = server
        self._send = send
        self._tools: Mapping[str, Tool] = {}
        """By the name for the model."""
        self._prompts: Mapping[str, Prompt] = {}
        """By the name of the command."""
        self.resources = ServerResources(server)
        """Those of the server, and the tools that read them."""
        self._is_guard = False
        """The host asks about prompts, which may mention resources."""
        self._mentions: Frame = {"type": "mentions", "items": []}
        """What the host knows of them."""
        self._registered: dict[tuple[str, str], Frame] = {}
        """By kind and name."""

    def tool(self, name: str) -> Tool | None:
        """Return the tool that the model knows by this name; None if there is none now."""
        return self._tools.get(name)

    def prompt(self, command: str) -> Prompt | None:
        """Return the prompt behind a command; None if there is none now."""
        return self._prompts.get(command)

    async def refresh(self, connection: McpConnection) -> None:
        """Register what is new or has changed, and unregister what is gone.

        Raises:
            MCPError, TimeoutError, ValueError: the list of tools could not be read.
        """
        tools = {tool.name: tool for tool in await connection.tools()}
        try:
            resources = await connection.resources()
            has_resources = bool(resources or await connection.resource_templates())
        except (MCPError, TimeoutError, ValueError) as error:
            log.warning("the server's resources could not be listed: %s", error)
            resources, has_resources = [], False
        self._offer_tools(tools, has_resources=has_resources)
        self._offer_mentions(self.resources.mentionable(resources))
        try:
            offered = {prompt.name: prompt for prompt in await connection.prompts()}
        except (MCPError, TimeoutError, ValueError) as error:
            log.warning("the server's prompts could not be listed: %s", error)  # its tools work without
        else:
            self._offer_prompts(offered)

    def _offer_tools(self, tools: Mapping[str, Tool], *, has_resources: bool) -> None:
        names = offered_names(self._server, tools)
        self._tools = {names[own]: tool for own, tool in tools.items()}
        frames = {names[own]: registration(names[own], tool) for own, tool in tools.items()}
        self._register("tool", frames | self.resources.registrations(frames, is_used=has_resources))
        if has_resources and not self._is_guard:
            self._is_guard = True
            self._send({"type": "subscribe", "intercept": ["user_prompt_submit"]})

    def _offer_mentions(self, frame: Frame) -> None:
        if frame != self._mentions:
            self._mentions = frame
            self._send(frame)

    def _offer_prompts(self, offered: Mapping[str, Prompt]) -> None:
        names = prompts.command_names(self._server, offered)
        self._prompts = {names[own]: prompt for own, prompt in offered.items()}
        self._register("command", {name: prompts.registration(name, one) for name, one in self._prompts.items()})

    def _register(self, kind: str, frames: Mapping[str, Frame]) -> None:
        gone = [name for known, name in self._registered if known == kind and name not in frames]
        for name in gone:
            del self._registered[kind, name]
            self._send({"type": "unregister", "kind": kind, "name": name})
        for name, frame in frames.items():
            if self._registered.get((kind, name)) != frame:
                self._registered[kind, name] = frame
                self._send(frame)
