"""Which files outside of the jail commands may change: rules for the tool `files`, and what a session was allowed.

    deny (rules, workspace)  >  ask (rules, workspace)  >  allow (rules)  >  a question
                                 └── allowed if a grant of this session covers it ──┘

`match` of these rules is the path of a file, or of a directory with everything in it: absolute, or `~/…`. It is no glob. A rule
that denies or asks holds for everything if its `match` is no such path.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from zotd.core.choices import ALWAYS, SAME, SESSION, Choice
from zotd.core.permissions import EVERYTHING, FILES, Action, PermissionRule, Policy, Ruling
from zotd.jail.policy import is_in

ONCE_MAX = 32
"""Most commands of a session that have something allowed for their next run; the oldest are forgotten."""


class OnceGrants:
    """What a command may change when it is run again, with the same words, by command. Used on one event loop."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[str, ...]] = {}

    def add(self, command: str, places: Iterable[str]) -> None:
        """Allow these for the next run of the command, with what was allowed before and not used."""
        before = self._places.pop(command, ())
        self._places[command] = tuple(dict.fromkeys((*before, *places)))
        if len(self._places) > ONCE_MAX:
            del self._places[next(iter(self._places))]

    def of(self, command: str) -> tuple[str, ...]:
        """Return what is allowed for the next run of the command."""
        return self._places.get(command, ())

    def use(self, command: str) -> None:
        """Forget what was allowed: the command is run."""
        self._places.pop(command, None)


def granted_places(policy: Policy, home: str | None) -> tuple[str, ...]:
    """Return the files and directories that commands of a session may change outside of their jail."""
    allowed = dict.fromkeys(_allowed((*policy.rules, *policy.granted), home))
    return tuple(place for place in allowed if _ruling(policy, place, home).action is Action.ALLOW)


def judge_places(policy: Policy, places: Sequence[str], home: str | None) -> Ruling:
    """Return whether commands may be allowed to change these, or a person is asked; the reason is a clause."""
    rulings = [_ruling(policy, place, home) for place in places]
    # The least that holds for one of them holds for all: they are opened together.
    for action in (Action.DENY, Action.ASK):
        if ruling := next((one for one in rulings if one.action is action), None):
            return ruling
    return rulings[0]


def place_choice(places: Sequence[str]) -> Choice:
    """Return what can be allowed beyond the next run of a command: these for all commands."""
    rules = tuple(PermissionRule(FILES, Action.ALLOW, place) for place in places)
    return Choice(SAME, f"every command may change {named(places)}", rules, (SESSION, ALWAYS))


def named(places: Sequence[str]) -> str:
    """Return the places with their kinds, as one phrase. Blocks for a `stat` each."""
    return " and ".join(
        f"{place} and everything in it" if Path(place).is_dir() else f"the file {place}" for place in places
    )


def malformed_grants(rules: Iterable[PermissionRule]) -> list[str]:
    """Return what is wrong with rules for `files`, as sentences for people."""
    found = []
    for rule in rules:
        if rule.tool == FILES and rule.match != EVERYTHING and _path(rule.match, "/") is None:
            does = "is left out" if rule.action is Action.ALLOW else "holds for all files"
            found.append(
                f"a rule for {FILES} in config.toml {does}, because its match is neither an absolute path nor one that"
                f' begins with ~/: "{rule.match}"'
            )
    return found


def _ruling(policy: Policy, place: str, home: str | None) -> Ruling:
    if _first((*policy.rules, *policy.narrowing), Action.DENY, place, home):
        return Ruling(Action.DENY, "rule", f"a rule in config.toml denies it for {place}")
    is_asked = _first((*policy.rules, *policy.narrowing), Action.ASK, place, home)
    rules = policy.granted if is_asked else (*policy.rules, *policy.granted)
    if any(is_in(place, [allowed]) for allowed in _allowed(rules, home)):
        return Ruling(Action.ALLOW, "session", f"commands may change {place}")
    return Ruling(Action.ASK, "rule" if is_asked else "mode", f"its jail does not let it change {place}")


def _allowed(rules: Iterable[PermissionRule], home: str | None) -> Iterator[str]:
    # A rule that allows every tool is about questions, and must not open the files around what is confined.
    for rule in rules:
        if rule.tool == FILES and rule.action is Action.ALLOW and (path := _path(rule.match, home)):
            yield path


def _first(rules: Iterable[PermissionRule], action: Action, place: str, home: str | None) -> bool:
    return any(rule.action is action and _concerns(rule, place, home) for rule in rules)


def _concerns(rule: PermissionRule, place: str, home: str | None) -> bool:
    if not fnmatchcase(FILES, rule.tool):
        return False
    if rule.tool != FILES:
        return rule.match == EVERYTHING  # another match is about the arguments of tools
    path = _path(rule.match, home)
    # Also a directory around it: to open that would open what the rule is about.
    return path is None or is_in(place, [path]) or is_in(path, [place])


def _path(match: str, home: str | None) -> str | None:
    if match == "~" or match.startswith("~/"):
        return os.path.normpath(f"{home}{match[1:]}") if home else None
    return os.path.normpath(match) if match.startswith(os.sep) else None
