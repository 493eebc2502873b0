"""Which tools the model may use in one step: ours, and those of the session's extensions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from zotd.core.caching import digest
from zotd.core.ports import Tool, ToolSpec
from zotd.core.records import Settings
from zotd.exthost.tools import ExtensionTool
from zotd.tools import TOOLS
from zotd.wire.errors import Code, CommandError


@dataclass(frozen=True)  # no slots, because of the cached property
class Toolbox:
    """Tools by name, and those that are listed for the model; `hidden` wait until they are activated."""

    tools: Mapping[str, Tool]
    specs: Sequence[ToolSpec]
    hidden: Mapping[str, Tool]

    @cached_property
    def digests(self) -> tuple[tuple[str, str], ...]:
        """The name and a digest of each tool as the model sees it, in their order."""
        return tuple((spec.name, digest([spec.description, spec.schema])) for spec in self.specs)


def choose(
    settings: Settings,
    extras: Sequence[ExtensionTool] = (),
    activated: Collection[str] = (),
    known: Sequence[str] = (),
    *,
    unlisted: Collection[str] = (),
    finders: Sequence[Tool] = (),
) -> Toolbox:
    """The tools of a session with these settings, whose extensions offer `extras`.

    An unknown name in `settings.tools` is left out: its extension may start later (`unknown` returns it). `known`: the
    names that the model has seen, in their order. They keep it, and new ones follow, because a vendor's cache holds the
    tools up to the first difference. `unlisted`: those that can be called, but are shown only when they are activated;
    `finders`: what finds them.
    """
    if settings.no_tools:
        return Toolbox({}, (), {})
    every: dict[str, Tool] = {tool.spec.name: tool for tool in (*TOOLS, *finders)}
    hidden: dict[str, Tool] = {}
    for tool in extras:
        is_hidden = tool.exposure == "deferred" and tool.spec.name not in activated
        (hidden if is_hidden else every)[tool.spec.name] = tool
    if settings.tools is not None:
        every = {name: every[name] for name in settings.tools if name in every}
        hidden = {name: hidden[name] for name in settings.tools if name in hidden}
    if known:
        every = {name: every[name] for name in (*known, *every) if name in every}
    shown = (tool.spec for name, tool in every.items() if name not in unlisted or name in activated)
    return Toolbox(every, tuple(shown), hidden)


def joined(box: Toolbox, tools: Sequence[Tool]) -> Toolbox:
    """The toolbox with further tools, which replace those of the same name."""
    if not tools:
        return box
    new = {tool.spec.name: tool for tool in tools}
    specs = {**{spec.name: spec for spec in box.specs}, **{name: tool.spec for name, tool in new.items()}}
    return Toolbox({**box.tools, **new}, tuple(specs.values()), box.hidden)


def unknown(settings: Settings, toolbox: Toolbox) -> list[str]:
    """The names in `settings.tools` that no tool has."""
    named = () if settings.tools is None or settings.no_tools else settings.tools
    return [name for name in named if name not in toolbox.tools and name not in toolbox.hidden]


def missing(settings: Settings, toolbox: Toolbox) -> list[str]:
    """Return a sentence about requested tools that do not exist, if there are any."""
    names = unknown(settings, toolbox)
    there = ", ".join(toolbox.tools) or "none"
    return [f"there is no tool {', '.join(names)}; the tools here are: {there}"] if names else []


def check(settings: Settings) -> None:
    """Raise CommandError for a tool that cannot exist: it is not ours, and the session has no extensions."""
    names = unknown(settings, choose(settings))
    if names and settings.no_ext and not settings.extensions:
        there = ", ".join(tool.spec.name for tool in TOOLS)
        raise CommandError(Code.BAD_REQUEST, f'unknown tool "{names[0]}"; there are {there}')
