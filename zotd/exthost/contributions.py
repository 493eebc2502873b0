"""What extensions contribute to their workspace at this moment: tools, commands, and what they want to hear.

Each process has its `Registrations`, which may grow and shrink at any time; those of the processes that serve, in load
order, make the `Contributions`. A crash takes them away, a reload swaps them at once.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import islice

from zotd.core.registry import INTERCEPTS, NameClaim, Names, command_fault, resolve, tool_fault
from zotd.wire import ext
from zotd.wire.base import encode

BUILTIN_TOOLS = ("read", "write", "edit", "bash", "glob", "grep", "skill")

Registration = ext.RegisterTool | ext.RegisterCommand | ext.Subscribe | ext.Unregister

MAX_REGISTRATIONS = 2_000
"""Of one process, for each kind; a larger MCP server would not fit into any model's context either."""

MAX_BYTES = 8 * 1024 * 1024
"""Of all tools and commands of one process, as JSON: every request to the model holds them, and no vendor takes more than
32 MiB."""

EVENT_CHARS = 64
"""Longest name of an event; there are no such long ones."""


@dataclass(slots=True)
class Registrations:
    """What one process has registered so far."""

    tools: dict[str, ext.RegisterTool] = field(default_factory=dict)
    commands: dict[str, ext.RegisterCommand] = field(default_factory=dict)
    events: set[str] = field(default_factory=set)
    intercepts: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    """A sentence for each registration that is not used, by what it was."""
    _sizes: dict[str, int] = field(default_factory=dict)
    """Of each tool and command, by what it is."""

    def take(self, frame: Registration) -> str | None:
        """Add or remove; a sentence when something of it is refused, and nothing else is."""
        match frame:
            case ext.RegisterTool(name):
                fault = tool_fault(frame) or _too_many(self.tools, name) or self._too_much(f'tool "{name}"', frame)
                if fault is None:
                    self.tools[name] = frame
                return self._judged(f'tool "{name}"', fault)
            case ext.RegisterCommand(name):
                what = f'command "{name}"'
                fault = command_fault(frame) or _too_many(self.commands, name) or self._too_much(what, frame)
                if fault is None:
                    self.commands[name] = frame
                return self._judged(what, fault)
            case ext.Unregister():
                self._take_back(frame)
                return None
            case ext.Subscribe():
                return self._subscribe(frame)

    def doubts(self) -> list[str]:
        """A sentence for each parameter that its author has given a type which no model is told of."""
        return [
            f"the tool {name}, parameter {parameter[:100]}: the type hint {hint[:100]} cannot be described; "
            "the model may send anything"
            for name, tool in self.tools.items()
            for parameter, hint in tool.undescribed.items()
        ]

    def frames(self) -> list[Registration]:
        """What would register the same."""
        heard = ext.Subscribe(tuple(sorted(self.events)), tuple(sorted(self.intercepts)))
        return [*self.tools.values(), *self.commands.values(), heard]

    def _take_back(self, frame: ext.Unregister) -> None:
        """Channels are their owner's business."""
        if frame.kind == "tool":
            self.tools.pop(frame.name, None)
        elif frame.kind == "command":
            self.commands.pop(frame.name, None)
        what = f'{frame.kind} "{frame.name}"'
        self.refused.pop(what[:100], None)
        self._sizes.pop(what, None)

    def _too_much(self, what: str, frame: ext.RegisterTool | ext.RegisterCommand) -> str | None:
        size = len(encode(frame))
        if sum(self._sizes.values()) - self._sizes.get(what, 0) + size > MAX_BYTES:
            return f"tools and commands would exceed {MAX_BYTES // (1024 * 1024)} MiB"
        self._sizes[what] = size
        return None

    def _subscribe(self, frame: ext.Subscribe) -> str | None:
        names = (name for name in frame.events if len(name) <= EVENT_CHARS)
        self.events.update(islice(names, MAX_REGISTRATIONS - len(self.events)))
        self.intercepts.update(event for event in frame.intercept if event in INTERCEPTS)
        unknown = sorted(set(frame.intercept) - set(INTERCEPTS))
        return f"these events cannot be intercepted: {', '.join(unknown)[:200]}" if unknown else None

    def _judged(self, what: str, fault: str | None) -> str | None:
        """Remember that `what` is refused, or is not any more."""
        if fault is None:
            self.refused.pop(what[:100], None)
        elif len(self.refused) < MAX_REGISTRATIONS:
            self.refused[what[:100]] = f"the {what[:100]} is refused: {fault}"
        return fault and f"the {what[:100]} is refused: {fault}"


def _too_many(registered: Collection[str], name: str) -> str | None:
    if name in registered or len(registered) < MAX_REGISTRATIONS:
        return None
    return f"there are {MAX_REGISTRATIONS} already"


class Contributions:
    """Who has which name, among all that serve."""

    def __init__(self, offers: Sequence[tuple[str, Registrations]], reserved_commands: Collection[str]) -> None:
        """`offers`: extensions with their registrations, in load order."""
        self.tools: Names[ext.RegisterTool] = resolve(
            [NameClaim(owner, name, tool) for owner, offer in offers for name, tool in offer.tools.items()],
            BUILTIN_TOOLS,
        )
        self.commands: Names[ext.RegisterCommand] = resolve(
            [NameClaim(owner, name, command) for owner, offer in offers for name, command in offer.commands.items()],
            reserved_commands,
            fold=str.casefold,
        )

    def conflicts(self) -> list[tuple[str, str]]:
        """Each loser and a sentence."""
        found = [(one.loser, f"its tool {one.name} is hidden by that of {one.winner}") for one in self.tools.conflicts]
        for one in self.commands.conflicts:
            sentence = f"its command /{one.name} is hidden by that of {one.winner}; use /{one.loser}:{one.name}"
            found.append((one.loser, sentence))
        return found
