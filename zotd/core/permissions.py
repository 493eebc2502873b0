"""Decides whether a tool call may run, is denied, or needs a person's approval, by rules and modes. No file access.

    deny (rules, workspace)  >  ask (rules, workspace)  >  allow (rules)  >  the session's mode
                                 │
    a call that would be asked about is allowed if a grant of this session covers it

Every ambiguity is decided on the safe side: a rule that denies or asks applies when *any* spelling of its subject
matches, one that allows only when *every* spelling does (`docs/durability.md`, Approvals;
`docs/decisions/0012-approvals.md`).
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fnmatch import fnmatchcase

from zotd.core import hatches, shell, subagents, wakes
from zotd.wire.base import Frozen

WORKSPACE = "workspace"
"""The mode in which a jail takes the place of questions."""

MODES = ("yolo", WORKSPACE, "ask", "read-only")
"""Modes, for calls without a rule; each permits no more than the ones before it."""

EVERYTHING = "*"
"""The `match` that accepts any arguments."""

SHELL = "bash"
"""The built-in tool whose `match` applies to a command line."""

NETWORK = "network"
"""The `tool` of rules, and of questions, about hosts that commands in a jail want to reach (`zotd.permissions.host_rules`)."""

FILES = "files"
"""The `tool` of rules, and of questions, about files and directories outside that commands in a jail want to change
(`zotd.permissions.file_grants`)."""

_COMPOUND = re.compile(r"[\x00-\x08\x0a-\x1f\x7f;&|<>`]|\$[({\[]")
"""Characters that make a command line more than one command with arguments; no allow rule matches such a line.

`;` `&` `|` `$(` a backtick and a newline are documented. The rest is added here: `<` and `>` write files, open sockets
(`/dev/tcp`) and run commands (`<(`); `${` evaluates the content of a variable (`${x@P}`), and so does `$[`; a carriage
return or another control character hides text on a terminal. A tab counts as a blank."""

_GLOB = re.compile(r"[*?\[]")

STEERING = frozenset({".git", ".zot"})
"""Directories whose files run programs or configure what may run; a grant for the whole workspace excludes them."""


class Action(StrEnum):
    """Effect of a rule on a matching call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class PermissionRule(Frozen, frozen=True):
    """An entry of `[[rules]]`: `action` applies to calls of `tool` whose arguments match `match`."""

    tool: str
    """Glob on the tool's name, case-sensitive."""
    action: Action
    match: str = EVERYTHING
    """Glob on the path argument, on a command of `bash`, or else on the arguments as canonical JSON.

    For `bash`, a rule that denies or asks is matched with each command of the line, one that allows with the whole
    line.

    `*` matches any text, slashes included, `?` one character, `[a-z]` one of these."""


@dataclass(frozen=True, slots=True)
class PermissionQuery:
    """The properties of a call that rules depend on."""

    tool: str
    extension: str | None
    """Name of the extension that provides the tool; None for a built-in tool."""
    is_safe: bool
    """Whether it is a built-in tool that changes nothing."""
    args: Mapping[str, object]
    paths: Sequence[str] = ()
    """Every spelling of the file that the path argument leads to, normalised: absolute, relative to the working
    directory, and below the user's home (`~/…`), as written and with symbolic links followed. Empty if there is no path
    argument."""
    is_resolved: bool = True
    """False if the file system could not resolve the path. Then no allow rule matches it, and every deny or ask rule
    does."""
    is_confined: bool = False
    """Whether the call runs in the jail of its session, and stays within what the jail allows."""
    border: str = ""
    """What the call would do beyond its jail: a clause that follows "it would"; empty if it stays within or has none."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Mode, rules and grants of a session."""

    mode: str
    """One of `MODES`."""
    rules: Sequence[PermissionRule] = ()
    """Rules from the user's configuration."""
    narrowing: Sequence[PermissionRule] = ()
    """Rules of a trusted workspace. Its `allow` rules are ignored: a workspace may only restrict."""
    granted: Collection[PermissionRule] = ()
    """Rules that were allowed for the rest of this session."""
    limit: Callable[[PermissionQuery], str] | None = None
    """Returns why the command of this run does not allow a call; empty: it does."""

    is_open: bool = field(init=False)
    """Whether everything is allowed, so that `judge` need not be called."""

    def __post_init__(self) -> None:
        is_open = self.mode == "yolo" and not self.rules and not self.narrowing and self.limit is None
        object.__setattr__(self, "is_open", is_open)


@dataclass(frozen=True, slots=True)
class Ruling:
    """Decision about a call."""

    action: Action
    source: str
    """What decided: `yolo`, `mode`, `rule`, `plan`, `session` (a grant for the rest of the session) or `guard`."""
    reason: str
    """One sentence. For a denial, the model sees it as the tool's result."""


def judge(policy: Policy, question: PermissionQuery) -> Ruling:
    """Return whether the call is allowed, denied or needs an approval."""
    if policy.limit is not None and (reason := policy.limit(question)):
        return Ruling(Action.DENY, "rule", reason)
    ruling = _by_rules(policy, question) or _by_mode(policy.mode, question)
    # Grants replace only an approval: what a rule denies stays denied.
    if ruling.action is Action.ASK and covers(policy.granted, question):
        return Ruling(Action.ALLOW, "session", f"{question.tool} was allowed for the rest of this session")
    return ruling


def advised(ruling: Ruling, question: PermissionQuery, wish: str, reason: str) -> Ruling:
    """Return the ruling with what guards want: `ask` or `allow`; empty: they want nothing.

    `ask` turns what is allowed into a question. `allow` answers only a question that the session's mode asks: a rule, the
    mode `read-only` and the border of a jail are stronger.
    """
    if wish == "ask" and ruling.action is Action.ALLOW:
        return Ruling(Action.ASK, "guard", f"{question.tool} needs a person's approval: {reason}")
    is_of_mode = ruling.action is Action.ASK and ruling.source == "mode"
    if wish == "allow" and is_of_mode and not question.border:
        return Ruling(Action.ALLOW, "guard", f"{question.tool} is allowed by a guard")
    return ruling


def unattended(ruling: Ruling, way: str) -> Ruling:
    """Return the ruling to apply when no attached client can decide; never more permissive than `ruling`.

    `way` is `park` (the call waits), `deny` (denied instead), or `rules` (denied, unless a rule or `/plan` requires the approval;
    then it waits).
    """
    if ruling.action is not Action.ASK or way == "park" or (way == "rules" and ruling.source in {"rule", "plan"}):
        return ruling
    return Ruling(
        Action.DENY,
        ruling.source,
        f"{ruling.reason}, and no attached client can decide; the user can open the session in zot, start the run"
        f" with --wait{'' if ruling.source == 'plan' else ', or allow it with a rule in config.toml'}",
    )


def narrowest(*modes: str | None) -> str:
    """Return the most restrictive mode; None is skipped, and an unknown mode is stricter than all known ones."""
    given = (mode for mode in modes if mode is not None)
    return max(given, key=lambda mode: MODES.index(mode) if mode in MODES else len(MODES), default=MODES[0])


def rule_for(question: PermissionQuery) -> PermissionRule | None:
    """Return the narrowest rule that allows this call in future; None if no rule can, so it can only be allowed once.

    For `bash` the exact command, for a path argument the exact file, for an extension's tool every call.
    """
    rule = PermissionRule(question.tool, Action.ALLOW, _narrowest_match(question))
    return rule if _applies(rule, question) else None


def covers(granted: Iterable[PermissionRule], question: PermissionQuery) -> bool:
    """Whether a session's grants allow this call.

    A line of simple commands is covered if each of them is, by a rule with a `match`. Files in `STEERING` are only
    covered by a rule for the exact file.
    """
    # A grant for a whole directory does not include its steering directories.
    rules = [rule for rule in granted if not (rule.match.endswith("/*") and _steers(question))]
    if _first(rules, Action.ALLOW, question):
        return True
    command = question.args.get("command")
    if question.tool != SHELL or question.extension is not None or not isinstance(command, str):
        return False
    # A rule for any command does not cover compound lines, neither here nor in the configuration.
    named = [rule for rule in rules if rule.match != EVERYTHING]
    each = [replace(question, args={"command": part}) for part in shell.parts(command)]
    return bool(each) and all(_first(named, Action.ALLOW, one) for one in each)


def toml(rule: PermissionRule) -> str:
    """Return the rule as lines under `[[rules]]` for a configuration file, each with its newline.

    Raises:
        ValueError: it contains a lone surrogate, which cannot be stored in a file.
    """
    rows = {"tool": rule.tool, "match": rule.match, "action": rule.action.value}
    text = "".join(["[[rules]]\n", *(f"{key} = {_quoted(value)}\n" for key, value in rows.items())])
    text.encode()  # raises for a lone surrogate
    return text


def literally(text: str) -> str:
    """Return a glob that matches exactly this text."""
    return _GLOB.sub(r"[\g<0>]", text)


def digest(tool: str, args: Mapping[str, object]) -> str:
    """Return the SHA-256 (hexadecimal) of `{"args":…,"tool":…}` as canonical JSON. A decision is valid for it only.

    Canonical: keys sorted, no blanks, only ASCII.
    """
    # ASCII only, so that clients in other languages can compute the same bytes.
    text = json.dumps({"args": args, "tool": tool}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


# --- judging ----------------------------------------------------------------------------------------------------------


def _by_rules(policy: Policy, question: PermissionQuery) -> Ruling | None:
    # In this order, so that no allow rule overrides a deny or ask rule, wherever they are written.
    for action in (Action.DENY, Action.ASK):
        for whose, rules in (("", policy.rules), ("this workspace's ", policy.narrowing)):
            if rule := _first(rules, action, question):
                return Ruling(action, "rule", _sentence(question.tool, rule, whose))
    # Before the allow rules: the command that the line hides may be one that a rule denies.
    if rule := _hides((*policy.rules, *policy.narrowing), question):
        return Ruling(Action.ASK, "rule", _unclear(rule))
    if rule := _first(policy.rules, Action.ALLOW, question):
        return Ruling(Action.ALLOW, "rule", _sentence(question.tool, rule, ""))
    return None


def _by_mode(mode: str, question: PermissionQuery) -> Ruling:
    if mode == "yolo":
        return Ruling(Action.ALLOW, "yolo", "everything is allowed in this session")
    if mode == WORKSPACE and question.is_confined:
        return Ruling(Action.ALLOW, "mode", f"{question.tool} stays within the jail of this session")
    if mode == WORKSPACE and question.border:
        reason = f"{question.tool} needs a person's approval: it would {question.border}"
        return Ruling(Action.ASK, "mode", reason)
    # A subagent is judged by its own calls, and a run after a wake by its own. The claim of an extension to be safe is not trusted.
    if (question.is_safe or question.tool in {subagents.NAME, wakes.NAME}) and question.extension is None:
        return Ruling(Action.ALLOW, "mode", f"{question.tool} changes nothing")
    if mode in {"ask", WORKSPACE}:  # without a jail, or of an extension, which is in none
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
    """Whether every relevant spelling matches."""
    if question.tool == SHELL and question.extension is None:
        command = question.args.get("command")
        return isinstance(command, str) and not _COMPOUND.search(command) and _fits(command, pattern)
    # A path that cannot be resolved may lead to any file, so only a rule for all files allows it.
    if pattern == EVERYTHING or not question.is_resolved:
        return pattern == EVERYTHING
    if not question.paths:
        return fnmatchcase(_as_json(question.args), pattern)
    spellings = [path for path in question.paths if _kind(path) == _kind(pattern) or _GLOB.match(pattern)]
    # A pattern that begins with a wildcard can match every kind of spelling, so it has to match all of them.
    return bool(spellings) and all(fnmatchcase(path, pattern) for path in spellings)


def _concerns(pattern: str, question: PermissionQuery) -> bool:
    """Whether any spelling matches, ignoring case: on some systems another case names the same file or program."""
    # A path that cannot be resolved may lead to the file that the rule is about.
    if pattern == EVERYTHING or not question.is_resolved:
        return True
    folded = _folded(pattern)
    return any(fnmatchcase(text, pattern) or fnmatchcase(_folded(text), folded) for text in _subjects(question))


def _subjects(question: PermissionQuery) -> Sequence[str]:
    """All texts that a deny or ask rule is matched with."""
    if question.tool == SHELL and question.extension is None:
        command = str(question.args.get("command", ""))
        # With a blank added, `rm *` also matches `rm` without arguments.
        parts = shell.parsed(command).commands
        return command, " ".join(command.split()), *parts, *(f"{part} " for part in parts)
    if question.paths and question.extension is None:
        return question.paths
    # An extension's tool may get a path that it ignores; that must not hide the other arguments from the rule.
    return *question.paths, _as_json(question.args)


def _fits(command: str, pattern: str) -> bool:
    """Whether it is one simple command that matches, and uses no hatch that the rule does not name.

    Also tried with a blank added: `npm test *` includes a bare `npm test`.
    """
    if not (fnmatchcase(command, pattern) or fnmatchcase(f"{command} ", pattern)):
        return False
    words = shell.parsed(command).only
    return words is not None and hatches.are_named(words, pattern)


def _hides(rules: Iterable[PermissionRule], question: PermissionQuery) -> PermissionRule | None:
    """Return a rule that may apply to a command which the text of the line does not show; None if there is none."""
    if question.tool != SHELL or question.extension is not None:
        return None
    narrowing = [one for one in rules if one.action is not Action.ALLOW and fnmatchcase(SHELL, one.tool)]
    if not narrowing or shell.parsed(str(question.args.get("command", ""))).is_understood:
        return None
    return narrowing[0]  # which of them applies is unknown


def _steers(question: PermissionQuery) -> bool:
    # Without regard to case, as on some file systems.
    return any(not STEERING.isdisjoint(path.casefold().split("/")) for path in question.paths)


def _kind(path: str) -> str:
    """`/`, `~` or empty. Relative spellings are compared with relative patterns, absolute with absolute ones."""
    return path[:1] if path[:1] in {"/", "~"} else ""


def _folded(text: str) -> str:
    # Some file systems also normalise names, so that two spellings of a letter are the same file.
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
    """Return a TOML string. TOML has the escapes of JSON, but also requires one for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
