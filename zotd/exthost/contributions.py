"""Tools, commands and subscriptions that extensions currently contribute to their workspace.

Each process has `Registrations`, which may grow and shrink at any time. Those of all serving processes, in load order,
form the `Contributions`. A crash removes a process's registrations; a reload replaces them in one step.
"""

from collections.abc import Collection, Sequence
from itertools import islice

from msgspec import Struct, field

from zotd.core.registry import INTERCEPTS, NameClaim, Names, command_fault, resolve, tool_fault
from zotd.sanitize import blanked, harmless
from zotd.wire import ext
from zotd.wire.base import encode

BUILTIN_TOOLS = ("read", "write", "edit", "bash", "glob", "grep", "skill")

Registration = ext.RegisterTool | ext.RegisterCommand | ext.Subscribe | ext.Unregister | ext.Instructions | ext.Mentions

MAX_REGISTRATIONS = 2_000
"""Limit of one process for each kind. A larger MCP server would not fit into any model's context either."""

MAX_BYTES = 8 * 1024 * 1024
"""Limit of all tools and commands of one process, as JSON. Every model request contains the tools, and no vendor accepts
more than 32 MiB."""

INSTRUCTIONS_CHARS = 8_000
"""Longest instructions of one process; the model reads them with every request."""

MAX_MENTIONS = 500
"""Most mentions of one process: a list in which a person still finds something."""

MENTION_CHARS = 500
"""Longest mention. A longer one is left out, because a part of it means nothing."""

DETAIL_CHARS = 200

UNKNOWN_INTERCEPTS = "these events cannot be intercepted"
"""Begins the sentence about interceptions that do not exist; the validation looks for it."""

EVENT_CHARS = 64
"""Longest name of an event. Longer names match no event, so they are not stored."""


class Registrations(Struct):
    """The registrations of one process."""

    # Dicts, because a name that is registered again replaces the earlier frame but keeps its place in the order.
    tools: dict[str, ext.RegisterTool] = field(default_factory=dict)
    commands: dict[str, ext.RegisterCommand] = field(default_factory=dict)
    events: set[str] = field(default_factory=set)
    intercepts: set[str] = field(default_factory=set)
    instructions: str = ""
    """What the model should know about the tools; nothing in it is invisible or steers a terminal."""
    mentions: tuple[ext.Mention, ...] = ()
    """What prompts can mention; nothing in it is invisible or steers a terminal."""
    refused: dict[str, str] = field(default_factory=dict)
    """The reason for each refused registration, by its description."""
    _sizes: dict[str, int] = field(default_factory=dict)
    """Size of each tool and command as JSON, by its description."""

    def take(self, frame: Registration) -> str | None:
        """Apply a registration. Return a sentence if it is refused; other registrations are not affected."""
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
            case ext.Mentions(items):
                self.mentions = tuple(filter(None, map(_mention, items[:MAX_MENTIONS])))
                return f"of the mentions, {MAX_MENTIONS} are used" if len(items) > MAX_MENTIONS else None
            case ext.Instructions(text):
                # Cut first: cleaning makes a text longer.
                self.instructions = harmless(text[:INSTRUCTIONS_CHARS]).strip()
                is_cut = len(text) > INSTRUCTIONS_CHARS
                return f"of the instructions, {INSTRUCTIONS_CHARS:,} characters are used" if is_cut else None

    def doubts(self) -> list[str]:
        """Return a sentence for each parameter whose type hint is missing from the schema."""
        return [
            f"the tool {name}, parameter {parameter[:100]}: the type hint {hint[:100]} cannot be described; "
            "the model may send anything"
            for name, tool in self.tools.items()
            for parameter, hint in tool.undescribed.items()
        ]

    def frames(self) -> list[Registration]:
        """Return frames that recreate these registrations; the next daemon replays them."""
        heard = ext.Subscribe(tuple(sorted(self.events)), tuple(sorted(self.intercepts)))
        said = [ext.Instructions(self.instructions)] if self.instructions else []
        mentioned = [ext.Mentions(self.mentions)] if self.mentions else []
        return [*self.tools.values(), *self.commands.values(), heard, *said, *mentioned]

    def _take_back(self, frame: ext.Unregister) -> None:
        """Remove a tool or a command. Channels are handled by the host."""
        if frame.kind == "tool":
            self.tools.pop(frame.name, None)
        elif frame.kind == "command":
            self.commands.pop(frame.name, None)
        what = f'{frame.kind} "{frame.name}"'
        self.refused.pop(what[:100], None)
        self._sizes.pop(what, None)

    def _too_much(self, what: str, frame: ext.RegisterTool | ext.RegisterCommand) -> str | None:
        # A name that is registered again replaces the old frame, so only the difference counts.
        size = len(encode(frame))
        if sum(self._sizes.values()) - self._sizes.get(what, 0) + size > MAX_BYTES:
            return f"tools and commands would exceed {MAX_BYTES // (1024 * 1024)} MiB"
        self._sizes[what] = size
        return None

    def _subscribe(self, frame: ext.Subscribe) -> str | None:
        # Unknown events are accepted: a later version of zot may send them. Unknown interceptions are not, because a
        # guard that is never asked protects nothing.
        names = (name for name in frame.events if len(name) <= EVENT_CHARS)
        self.events.update(islice(names, MAX_REGISTRATIONS - len(self.events)))
        self.intercepts.update(event for event in frame.intercept if event in INTERCEPTS)
        unknown = sorted(set(frame.intercept) - set(INTERCEPTS))
        return f"{UNKNOWN_INTERCEPTS}: {', '.join(unknown)[:200]}" if unknown else None

    def _judged(self, what: str, fault: str | None) -> str | None:
        """Record whether `what` is refused, and return the sentence if it is."""
        if fault is None:
            self.refused.pop(what[:100], None)
        # Bounded, because refused names do not count against the limits of accepted ones.
        elif len(self.refused) < MAX_REGISTRATIONS:
            self.refused[what[:100]] = f"the {what[:100]} is refused: {fault}"
        return fault and f"the {what[:100]} is refused: {fault}"


def _mention(mention: ext.Mention) -> ext.Mention | None:
    """Return the mention as it can be shown; None if it cannot be typed as one word."""
    text = mention.text
    if not 0 < len(text) <= MENTION_CHARS or not text.isprintable() or any(map(str.isspace, text)) or '"' in text:
        return None
    return ext.Mention(text, blanked(mention.detail[:DETAIL_CHARS]))


def _too_many(registered: Collection[str], name: str) -> str | None:
    if name in registered or len(registered) < MAX_REGISTRATIONS:
        return None
    return f"there are {MAX_REGISTRATIONS} already"


class Contributions:
    """The owner of each name among all serving extensions."""

    def __init__(self, offers: Sequence[tuple[str, Registrations]], reserved_commands: Collection[str]) -> None:
        """Resolve names; `offers` are the serving extensions with their registrations, in load order."""
        self.tools: Names[ext.RegisterTool] = resolve(
            [NameClaim(owner, name, tool) for owner, offer in offers for name, tool in offer.tools.items()],
            BUILTIN_TOOLS,
        )
        self.commands: Names[ext.RegisterCommand] = resolve(
            [NameClaim(owner, name, command) for owner, offer in offers for name, command in offer.commands.items()],
            reserved_commands,
            # People type commands, so upper and lower case are alike; models copy the names of tools exactly.
            fold=str.casefold,
        )

    def conflicts(self) -> list[tuple[str, str]]:
        """Return each extension that lost a name, with a sentence that says how to reach it."""
        found = [(one.loser, f"its tool {one.name} is hidden by that of {one.winner}") for one in self.tools.conflicts]
        for one in self.commands.conflicts:
            sentence = f"its command /{one.name} is hidden by that of {one.winner}; use /{one.loser}:{one.name}"
            found.append((one.loser, sentence))
        return found
