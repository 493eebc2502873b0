"""Resolves names that several extensions register, and validates registrations.

Precedence is the load order (explicit, project a-z, global a-z) and not the time of registration, because processes
that start together would race. Built-in names always win.

Source: `docs/extensions.md`.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Generic, TypeVar

from msgspec import Struct

from zotd.core.depth import MAX_DEPTH, is_too_deep
from zotd.core.ports import Replay
from zotd.wire.ext import RegisterCommand, RegisterTool

OURS = "zot"
"""Winner of a conflict with a built-in name."""

EXPOSURES = {
    "": "direct",
    "direct": "direct",
    "deferred": "deferred",
    "codemode": "deferred",
    "model-only": "model-only",
}
"""Accepted values of `exposure`, and the value that each stands for."""

INTERCEPTS = (
    "user_prompt_submit",
    "before_agent_start",
    "turn_start",
    "assistant_message",
    "tool_call",
    "tool_result",
)
"""Events that an extension can intercept."""

TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Names that every vendor accepts. A single other name would make the vendor refuse each request of the session."""

_COMMAND_NAME = re.compile(r"[^\s/]\S{0,63}")

T = TypeVar("T")


class NameClaim(Struct, Generic[T], frozen=True):
    """A name registered by an extension."""

    owner: str
    name: str
    value: T


class Conflict(Struct, frozen=True):
    """A name that was registered twice."""

    name: str
    winner: str
    """Name of an extension, or `OURS`."""
    loser: str


class Names(Struct, Generic[T], frozen=True):
    """Result of resolving names that several owners claim."""

    winners: Mapping[str, NameClaim[T]]
    """By name, in load order."""
    qualified: Mapping[str, NameClaim[T]]
    """Every claim as `owner:name`, losers too."""
    conflicts: tuple[Conflict, ...]
    fold: Callable[[str], str]

    def find(self, name: str) -> NameClaim[T] | None:
        """Return the claim for `name`, plain or qualified, or None."""
        key = self.fold(name)
        # Plain names first, because the plain name of a command may contain a colon.
        return self.winners.get(key) or self.qualified.get(key)


def resolve(claims: Iterable[NameClaim[T]], reserved: Collection[str], *, fold: Callable[[str], str] = str) -> Names[T]:
    """Give each name to the first of `claims` (in load order), unless it is `reserved`.

    `fold` normalises names before they are compared: `str.casefold` for names that people type.
    """
    winners: dict[str, NameClaim[T]] = {}
    qualified: dict[str, NameClaim[T]] = {}
    conflicts: list[Conflict] = []
    ours = {fold(name) for name in reserved}
    for claim in claims:
        key = fold(claim.name)
        # For every claim, so that a tool or command that loses its plain name stays reachable.
        qualified[fold(f"{claim.owner}:{claim.name}")] = claim
        if key in ours:
            conflicts.append(Conflict(claim.name, OURS, claim.owner))
        elif key in winners:
            conflicts.append(Conflict(claim.name, winners[key].owner, claim.owner))
        else:
            winners[key] = claim
    return Names(winners, qualified, tuple(conflicts), fold)


def tool_fault(tool: RegisterTool) -> str | None:
    """Return why this tool is refused, or None if it is valid.

    Checked here because a vendor that dislikes one tool refuses every request of the session.
    """
    if not TOOL_NAME.fullmatch(tool.name):
        return "a name must have 1 to 64 letters, digits, _ and -"
    if tool.exposure not in EXPOSURES:
        return f'unknown exposure "{tool.exposure[:80]}"'  # cut, because it comes from the extension
    wrong = _schema_fault(tool.schema) if tool.schema is not None else None
    return wrong and f"its schema {wrong}"


def command_fault(command: RegisterCommand) -> str | None:
    """Return why this command is refused, or None if it is valid."""
    # Names are displayed in lists, so characters that are invisible or affect others are refused.
    if _COMMAND_NAME.fullmatch(command.name) and command.name.isprintable():
        return None
    return "a name must be one word of up to 64 visible characters, without a slash"


def full_schema(schema: Mapping[str, object] | None) -> dict[str, object]:
    """Return the schema in the form that vendors require: an object with `properties`. None means no arguments."""
    return {"type": "object", "properties": {}, **(schema or {})}


def replay_of(tool: RegisterTool) -> Replay:
    """Return the tool's replay class; an unknown value is treated as `never`, the safe choice."""
    return Replay(tool.replay) if tool.replay in set(Replay) else Replay.NEVER


def exposure_of(tool: RegisterTool) -> str:
    """Return `direct`, `deferred` or `model-only`; the older field `deferred` applies if `exposure` is empty."""
    if not tool.exposure and tool.deferred:
        return "deferred"
    return EXPOSURES[tool.exposure]


def _schema_fault(schema: Mapping[str, object]) -> str | None:
    """Return why it is not a JSON Schema of an object, as the end of a sentence that begins with "its schema"."""
    if is_too_deep(schema):
        return f"is nested more than {MAX_DEPTH} deep"
    if schema.get("type", "object") != "object":
        return "does not describe an object; arguments are always one"
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping) or not all(isinstance(one, Mapping | bool) for one in properties.values()):
        return "has `properties` that are not an object of schemas"
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        return "has a `required` that is not a list of names"
    return None
