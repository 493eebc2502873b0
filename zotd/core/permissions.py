"""May this call run, or has a person to be asked? Rules and modes, judged without looking at any file.

    deny (rules, workspace)  >  ask (rules, workspace)  >  allow (rules)  >  the session's mode
                                 │
    what would be asked, and was allowed for the rest of the session, is not asked again

Everything here errs to one side: a rule that denies or asks applies when *any* spelling of what it is about fits it, one
that allows only when *every* spelling does (`docs/durability.md`, Approvals; `docs/decisions/0012-approvals.md`).
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase

from zotd.core import hatches, shell
from zotd.wire.base import Frozen

MODES = ("yolo", "ask", "read-only")
"""What becomes of a call without a rule; each permits no more than those before it."""

EVERYTHING = "*"
"""The `match` that does not look at the arguments."""

SHELL = "bash"
"""Our tool whose `match` is about a command line."""

_COMPOUND = re.compile(r"[\x00-\x08\x0a-\x1f\x7f;&|<>`]|\$[({\[]")
"""What makes more of a command line than one command with arguments, so that no allow can fit it.

`;` `&` `|` `$(` a backtick and a newline are the promise. The rest is ours: `<` and `>` write files, open sockets
(`/dev/tcp`) and run commands (`<(`); `${` runs what is in a variable (`${x@P}`), and so does `$[`; a carriage return or
another control character hides on a screen what stands before it. A tab is a blank."""

_GLOB = re.compile(r"[*?\[]")

STEERING = frozenset({".git", ".zot"})
"""Directories whose files run programs, or say what may run: allowing a whole workspace is not about them."""


class Action(StrEnum):
    """Effect of a rule on a matching call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class PermissionRule(Frozen, frozen=True):
    """One of `[[rules]]`: `action` holds for calls of `tool` with what fits `match`."""

    tool: str
    """A glob on the tool's name; case counts."""
    action: Action
    match: str = EVERYTHING
    """A glob on the path argument, on a command of `bash`, else on the arguments as canonical JSON.

    Of `bash`, one that denies or asks is about each command of the line, one that allows about the whole line.

    `*` stands for any text, slashes included, `?` for one character, `[a-z]` for one of these."""


@dataclass(frozen=True, slots=True)
class PermissionQuery:
    """A call, as far as rules look at it."""

    tool: str
    extension: str | None
    """Whose tool it is; None: ours."""
    is_safe: bool
    """It is one of ours that changes nothing."""
    args: Mapping[str, object]
    paths: Sequence[str] = ()
    """Every spelling of what the path argument leads to, each without `.` and `..` in the middle: absolute, relative to
    the working directory, and below the user's home (`~/…`), as written and with symbolic links followed. Empty: there
    is no path argument."""
    is_resolved: bool = True
    """False: the file system did not say where the path leads, so no path can be allowed, and each may be a denied
    one."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What holds for a session."""

    mode: str
    """One of `MODES`."""
    rules: Sequence[PermissionRule] = ()
    """Of the user's configuration."""
    narrowing: Sequence[PermissionRule] = ()
    """Of a trusted workspace; an `allow` among them counts for nothing."""
    granted: Collection[PermissionRule] = ()
    """What was allowed for the rest of this session."""

    @property
    def is_open(self) -> bool:
        """Everything may run: nothing has to be judged."""
        return self.mode == "yolo" and not self.rules and not self.narrowing


@dataclass(frozen=True, slots=True)
class Ruling:
    """What is to happen with a call."""

    action: Action
    source: str
    """Who says so: `yolo`, `mode`, `rule`, or `session` (somebody has allowed it for the rest of the session)."""
    reason: str
    """One sentence; of a denial, what the model is told."""


def judge(policy: Policy, question: PermissionQuery) -> Ruling:
    """Whether the call may run."""
    ruling = _by_rules(policy, question) or _by_mode(policy.mode, question)
    if ruling.action is Action.ASK and covers(policy.granted, question):
        return Ruling(Action.ALLOW, "session", f"{question.tool} was allowed for the rest of this session")
    return ruling


def unattended(ruling: Ruling, way: str) -> Ruling:
    """What becomes of the ruling when nobody is there who could be asked; never more than it was.

    `way`: `park` leaves it (the call waits), `deny` makes a question a denial, and so does `rules`, but for what a rule
    asks about, which waits.
    """
    if ruling.action is not Action.ASK or way == "park" or (way == "rules" and ruling.source == "rule"):
        return ruling
    return Ruling(
        Action.DENY,
        ruling.source,
        f"{ruling.reason}, and no attached client can decide; the user can open the session in zot, start the run"
        " with --wait, or allow it with a rule in config.toml",
    )


def narrowest(*modes: str | None) -> str:
    """The one of these modes that permits least; None stands for none, and a mode that nobody knows permits nothing."""
    given = (mode for mode in modes if mode is not None)
    return max(given, key=lambda mode: MODES.index(mode) if mode in MODES else len(MODES), default=MODES[0])


def rule_for(question: PermissionQuery) -> PermissionRule | None:
    """The narrowest rule that allows this call from now on; None when no rule can, so that it is for once only.

    Of `bash` the very command, of a path argument the very file, of an extension's tool every call.
    """
    rule = PermissionRule(question.tool, Action.ALLOW, _narrowest_match(question))
    return rule if _applies(rule, question) else None


def covers(granted: Iterable[PermissionRule], question: PermissionQuery) -> bool:
    """Whether what was allowed for a session holds for this call.

    A line of simple commands is covered when each of them is, by a rule that names commands. What lies in `STEERING`
    only a rule for that very file covers.
    """
    rules = [rule for rule in granted if not (rule.match.endswith("/*") and _steers(question))]
    if _first(rules, Action.ALLOW, question):
        return True
    command = question.args.get("command")
    if question.tool != SHELL or question.extension is not None or not isinstance(command, str):
        return False
    named = [rule for rule in rules if rule.match != EVERYTHING]
    each = [replace(question, args={"command": part}) for part in shell.parts(command)]
    return bool(each) and all(_first(named, Action.ALLOW, one) for one in each)


def toml(rule: PermissionRule) -> str:
    """The rule as it is written into a configuration file: three lines under `[[rules]]`, each with its newline.

    Raises:
        ValueError: it holds half of a surrogate pair, which no file can.
    """
    rows = {"tool": rule.tool, "match": rule.match, "action": rule.action.value}
    text = "".join(["[[rules]]\n", *(f"{key} = {_quoted(value)}\n" for key, value in rows.items())])
    text.encode()
    return text


def literally(text: str) -> str:
    """A glob that fits this text and no other."""
    return _GLOB.sub(r"[\g<0>]", text)


def digest(tool: str, args: Mapping[str, object]) -> str:
    """What a decision is bound to: SHA-256 (hexadecimal) of `{"args":…,"tool":…}` as canonical JSON.

    Canonical: keys sorted, no blanks, nothing but ASCII.
    """
    text = json.dumps({"args": args, "tool": tool}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


# --- judging ----------------------------------------------------------------------------------------------------------


def _by_rules(policy: Policy, question: PermissionQuery) -> Ruling | None:
    for action in (Action.DENY, Action.ASK):
        for whose, rules in (("", policy.rules), ("this workspace's ", policy.narrowing)):
            if rule := _first(rules, action, question):
                return Ruling(action, "rule", _sentence(question.tool, rule, whose))
    if rule := _hides((*policy.rules, *policy.narrowing), question):
        return Ruling(Action.ASK, "rule", _unclear(rule))
    if rule := _first(policy.rules, Action.ALLOW, question):
        return Ruling(Action.ALLOW, "rule", _sentence(question.tool, rule, ""))
    return None


def _by_mode(mode: str, question: PermissionQuery) -> Ruling:
    if mode == "yolo":
        return Ruling(Action.ALLOW, "yolo", "everything is allowed in this session")
    if question.is_safe and question.extension is None:
        return Ruling(Action.ALLOW, "mode", f"{question.tool} changes nothing")
    if mode == "ask":
        return Ruling(Action.ASK, "mode", f"{question.tool} needs a person's approval in this session")
    return Ruling(
        Action.DENY,
        "mode",
        f"{question.tool} is denied because this session is read-only: look with read, glob and grep, and tell the user"
        " what you would do; only the user can change the mode",
    )


def _first(rules: Iterable[PermissionRule], action: Action, question: PermissionQuery) -> PermissionRule | None:
    return next((rule for rule in rules if rule.action is action and _applies(rule, question)), None)


def _sentence(tool: str, rule: PermissionRule, whose: str) -> str:
    named = f'{whose}[[rules]] tool = "{rule.tool}", match = "{rule.match}"'
    match rule.action:
        case Action.DENY:
            return f"{tool} is denied by a rule ({named}): do it in another way, or ask the user to change the rule"
        case Action.ASK:
            return f"{tool} needs a person's approval because of a rule ({named})"
        case Action.ALLOW:
            return f"{tool} is allowed by a rule ({named})"


def _unclear(rule: PermissionRule) -> str:
    named = f'[[rules]] tool = "{rule.tool}", match = "{rule.match}", action = "{rule.action}"'
    return (
        "bash needs a person's approval: its text does not show which commands it runs, and a rule applies to some of them"
        f" ({named}); write the commands out, one by one, without eval or a variable as the command"
    )


# --- matching ---------------------------------------------------------------------------------------------------------


def _applies(rule: PermissionRule, question: PermissionQuery) -> bool:
    if not fnmatchcase(question.tool, rule.tool):
        return False
    return _allows(rule.match, question) if rule.action is Action.ALLOW else _concerns(rule.match, question)


def _allows(pattern: str, question: PermissionQuery) -> bool:
    """Whether every spelling that counts fits."""
    if question.tool == SHELL and question.extension is None:
        command = question.args.get("command")
        return isinstance(command, str) and not _COMPOUND.search(command) and _fits(command, pattern)
    if pattern == EVERYTHING or not question.is_resolved:
        return pattern == EVERYTHING
    if not question.paths:
        return fnmatchcase(_as_json(question.args), pattern)
    spellings = [path for path in question.paths if _kind(path) == _kind(pattern) or _GLOB.match(pattern)]
    return bool(spellings) and all(fnmatchcase(path, pattern) for path in spellings)


def _concerns(pattern: str, question: PermissionQuery) -> bool:
    """Whether any spelling fits; also one in other letters, which is the same file, or program, on some systems."""
    if pattern == EVERYTHING or not question.is_resolved:
        return True
    folded = _folded(pattern)
    return any(fnmatchcase(text, pattern) or fnmatchcase(_folded(text), folded) for text in _subjects(question))


def _subjects(question: PermissionQuery) -> Sequence[str]:
    """All that a rule which denies or asks may be about."""
    if question.tool == SHELL and question.extension is None:
        command = str(question.args.get("command", ""))
        # A blank behind each: `rm *` is about `rm` without arguments, too.
        parts = shell.parsed(command).commands
        return command, " ".join(command.split()), *parts, *(f"{part} " for part in parts)
    if question.paths and question.extension is None:
        return question.paths
    # An extension's tool may be given a path that it does not look at: that must not hide the other arguments.
    return *question.paths, _as_json(question.args)


def _fits(command: str, pattern: str) -> bool:
    """Whether it is one simple command that fits, and does nothing that has to be named.

    A blank behind it changes nothing: `npm test *` is about a bare `npm test`, too.
    """
    if not (fnmatchcase(command, pattern) or fnmatchcase(f"{command} ", pattern)):
        return False
    words = shell.parsed(command).only
    return words is not None and hatches.are_named(words, pattern)


def _hides(rules: Iterable[PermissionRule], question: PermissionQuery) -> PermissionRule | None:
    """A rule that could be about a part of a command line which nobody can take apart before it runs."""
    if question.tool != SHELL or question.extension is not None:
        return None
    narrowing = [one for one in rules if one.action is not Action.ALLOW and fnmatchcase(SHELL, one.tool)]
    if not narrowing or shell.parsed(str(question.args.get("command", ""))).is_understood:
        return None
    return narrowing[0]


def _steers(question: PermissionQuery) -> bool:
    return any(not STEERING.isdisjoint(path.casefold().split("/")) for path in question.paths)


def _kind(path: str) -> str:
    """`/`, `~` or nothing: relative spellings are compared with relative patterns, absolute ones with absolute ones."""
    return path[:1] if path[:1] in {"/", "~"} else ""


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text.casefold())


def _narrowest_match(question: PermissionQuery) -> str:
    if question.extension is not None:
        return EVERYTHING
    if question.tool == SHELL:
        return literally(str(question.args.get("command", "")))
    if question.paths:
        return literally(next((path for path in question.paths if path.startswith("/")), ""))
    return literally(_as_json(question.args))


# --- writing ----------------------------------------------------------------------------------------------------------


def _as_json(args: Mapping[str, object]) -> str:
    return json.dumps(args, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _quoted(text: str) -> str:
    """A TOML string: JSON's escapes are TOML's, but for DEL, which JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
