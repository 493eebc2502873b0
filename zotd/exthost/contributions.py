"""What extensions contribute to their workspace at this moment: tools, commands, and what they want to hear.

Each process has its `Registrations`, which may grow and shrink at any time; those of the processes that serve, in load
order, make the `Contributions`. A crash takes them away, a reload swaps them at once.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from zotd.core.registry import INTERCEPTS, Claim, Names, command_fault, resolve, tool_fault
from zotd.wire import ext

BUILTIN_TOOLS = ("read", "write", "edit", "bash", "glob", "grep", "skill")

Registration = ext.RegisterTool | ext.RegisterCommand | ext.Subscribe | ext.Unregister

MAX_REGISTRATIONS = 2_000
"""Of one process, for each kind; a larger MCP server would not fit into any model's context either."""


@dataclass(slots=True)
class Registrations:
    """What one process has registered so far."""

    tools: dict[str, ext.RegisterTool] = field(default_factory=dict)
    commands: dict[str, ext.RegisterCommand] = field(default_factory=dict)
    events: set[str] = field(default_factory=set)
    intercepts: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    """A sentence for each registration that is not used, by what it was."""

    def take(self, frame: Registration) -> str | None:
        """Add or remove; a sentence when something of it is refused, and nothing else is."""
        match frame:
            case ext.RegisterTool(name):
                return self._add(frame, f"tool {name}", tool_fault(frame), is_full=len(self.tools) >= MAX_REGISTRATIONS)
            case ext.RegisterCommand(name):
                is_full = len(self.commands) >= MAX_REGISTRATIONS
                return self._add(frame, f"command {name}", command_fault(frame), is_full=is_full)
            case ext.Unregister("tool", name):
                self.tools.pop(name, None)
                self.refused.pop(f"tool {name}", None)
            case ext.Unregister("command", name):
                self.commands.pop(name, None)
                self.refused.pop(f"command {name}", None)
            case ext.Unregister():
                pass  # channels are their owner's
            case ext.Subscribe(events, intercepts):
                if len(self.events) < MAX_REGISTRATIONS:
                    self.events.update(events)
                self.intercepts.update(event for event in intercepts if event in INTERCEPTS)
                unknown = sorted(set(intercepts) - set(INTERCEPTS))
                if unknown:
                    return f"there is nothing to intercept in {', '.join(unknown)[:200]}"
        return None

    def _add(
        self, frame: ext.RegisterTool | ext.RegisterCommand, what: str, fault: str | None, *, is_full: bool
    ) -> str | None:
        if fault is None and is_full:
            fault = f"the {what} is refused: there are {MAX_REGISTRATIONS} already"
        if fault is not None:
            if len(self.refused) < MAX_REGISTRATIONS:
                self.refused[what[:100]] = fault
            return fault
        self.refused.pop(what, None)
        if isinstance(frame, ext.RegisterTool):
            self.tools[frame.name] = frame
        else:
            self.commands[frame.name] = frame
        return None


class Contributions:
    """Who has which name, among all that serve."""

    def __init__(self, offers: Sequence[tuple[str, Registrations]], reserved_commands: Collection[str]) -> None:
        """`offers`: extensions with their registrations, in load order."""
        self.tools: Names[ext.RegisterTool] = resolve(
            [Claim(owner, name, tool) for owner, offer in offers for name, tool in offer.tools.items()], BUILTIN_TOOLS
        )
        self.commands: Names[ext.RegisterCommand] = resolve(
            [Claim(owner, name, command) for owner, offer in offers for name, command in offer.commands.items()],
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
