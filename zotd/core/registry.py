"""Who gets a name when several extensions register it, and which registrations are refused.

Precedence is the load order (explicit, project a-z, global a-z), never the moment of the registration: two processes
that start together would race. What zot brings itself wins over everybody.

Source: `docs/extensions.md`.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from zotd.core.depth import MAX_DEPTH, is_too_deep
from zotd.core.ports import Replay
from zotd.wire.ext import RegisterCommand, RegisterTool

OURS = "zot"
"""Stands for us as the winner of a conflict."""

EXPOSURES = {
    "": "direct",
    "direct": "direct",
    "deferred": "deferred",
    "codemode": "deferred",
    "model-only": "model-only",
}
"""What `exposure` may be, and what it means."""

INTERCEPTS = ("tool_call", "turn_start", "assistant_message", "before_agent_start")
"""Events that an extension can be asked about."""

TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What every vendor takes; one other name, and each request of the session would be refused."""

_COMMAND_NAME = re.compile(r"[^\s/]\S{0,63}")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NameClaim(Generic[T]):
    """An extension wants a name."""

    owner: str
    name: str
    value: T


@dataclass(frozen=True, slots=True)
class Conflict:
    """A name that two wanted."""

    name: str
    winner: str
    """An extension, or `OURS`."""
    loser: str


@dataclass(frozen=True, slots=True)
class Names(Generic[T]):
    """Result of resolving names that several owners claim."""

    winners: Mapping[str, NameClaim[T]]
    """By name, in load order."""
    qualified: Mapping[str, NameClaim[T]]
    """Every claim as `owner:name`, losers too."""
    conflicts: tuple[Conflict, ...]
    fold: Callable[[str], str]

    def find(self, name: str) -> NameClaim[T] | None:
        """The claim that `name` means, plain or qualified."""
        key = self.fold(name)
        return self.winners.get(key) or self.qualified.get(key)


def resolve(claims: Iterable[NameClaim[T]], reserved: Collection[str], *, fold: Callable[[str], str] = str) -> Names[T]:
    """Give each name to the first of `claims` (in load order) that wants it, unless it is `reserved`.

    `fold` makes names alike: `str.casefold` for what people type.
    """
    winners: dict[str, NameClaim[T]] = {}
    qualified: dict[str, NameClaim[T]] = {}
    conflicts: list[Conflict] = []
    ours = {fold(name) for name in reserved}
    for claim in claims:
        key = fold(claim.name)
        qualified[fold(f"{claim.owner}:{claim.name}")] = claim
        if key in ours:
            conflicts.append(Conflict(claim.name, OURS, claim.owner))
        elif key in winners:
            conflicts.append(Conflict(claim.name, winners[key].owner, claim.owner))
        else:
            winners[key] = claim
    return Names(winners, qualified, tuple(conflicts), fold)


def tool_fault(tool: RegisterTool) -> str | None:
    """Why this tool is refused; None when it is fine.

    One tool that a vendor refuses would cost every request of the session.
    """
    if not TOOL_NAME.fullmatch(tool.name):
        return "a name must have 1 to 64 letters, digits, _ and -"
    if tool.exposure not in EXPOSURES:
        return f'unknown exposure "{tool.exposure[:80]}"'
    wrong = _schema_fault(tool.schema) if tool.schema is not None else None
    return wrong and f"its schema {wrong}"


def command_fault(command: RegisterCommand) -> str | None:
    """Why this command is refused; None when it is fine."""
    if _COMMAND_NAME.fullmatch(command.name) and command.name.isprintable():
        return None
    return "a name must be one word of up to 64 visible characters, without a slash"


def full_schema(schema: Mapping[str, object] | None) -> dict[str, object]:
    """The schema as vendors want it: of an object, with `properties`; without one, of no arguments."""
    return {"type": "object", "properties": {}, **(schema or {})}


def replay_of(tool: RegisterTool) -> Replay:
    """What recovery may do; a word that we do not know means the safe one."""
    return Replay(tool.replay) if tool.replay in set(Replay) else Replay.NEVER


def exposure_of(tool: RegisterTool) -> str:
    """`direct`, `deferred` or `model-only`; the older field counts when the newer one is left out."""
    if not tool.exposure and tool.deferred:
        return "deferred"
    return EXPOSURES[tool.exposure]


def _schema_fault(schema: Mapping[str, object]) -> str | None:
    """What makes it no JSON Schema of an object; goes on from "its schema"."""
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
