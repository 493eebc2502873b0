"""Which hosts commands in a jail may reach: rules for the tool `network`, and the hosts of the configuration.

    deny (rules, workspace)  >  ask (rules, workspace)  >  allow (rules)  >  sandbox.hosts  >  a question
                                 └── allowed if a grant of this session covers it ───────────────┘

`match` of these rules is written like an entry of `sandbox.hosts`. One that denies or asks holds for all ports if it names
none; if it is no host, for all hosts.
"""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from zotd.config.sections import SandboxSection
from zotd.core.choices import ALWAYS, SAME, SESSION, Choice
from zotd.core.permissions import EVERYTHING, NETWORK, Action, PermissionRule, Policy, Ruling, toml
from zotd.proxy import HostError, HostQuestion, parse_rule
from zotd.proxy.default_hosts import DEFAULT_HOSTS
from zotd.proxy.hosts import HostPort, address_of
from zotd.proxy.rules import WEB_PORTS, HostRule, refusal

EVERYWHERE = parse_rule("*:*")
"""All but special addresses."""


class AllowedHosts(NamedTuple):
    """What the configuration allows."""

    rules: Sequence[HostRule]
    problems: Sequence[str]
    """What is wrong with hosts that are left out: sentences for people."""


@lru_cache(maxsize=4)
def allowed_hosts(section: SandboxSection) -> AllowedHosts:
    """Return the hosts that commands in a jail may reach by the configuration. Reading the list takes 0.2 ms, once."""
    rules, problems = [], []
    for text in (*(DEFAULT_HOSTS if section.default_hosts else ()), *section.hosts):
        try:
            rules.append(parse_rule(text))
        except HostError as error:
            problems.append(f"a host of sandbox.hosts in config.toml is malformed and left out: {error}")
    return AllowedHosts(rules, problems)


def judge_host(policy: Policy, allowed: Sequence[HostRule], question: HostQuestion) -> Ruling:
    """Return whether a command may connect there, may not, or a person is asked; the reason is a clause."""
    ruling = _by_rules(policy, question.remote)
    if ruling is None and any(rule.covers(question.remote) for rule in allowed):
        return Ruling(Action.ALLOW, "rule", f"{question.remote} is allowed by the configuration")
    ruling = ruling or Ruling(Action.ASK, "mode", refusal(question))
    if ruling.action is Action.ASK and _first(policy.granted, Action.ALLOW, question.remote):
        return Ruling(Action.ALLOW, "session", f"{question.remote} was allowed for the rest of this session")
    return ruling


def judge_page(policy: Policy, allowed: Sequence[HostRule], question: HostQuestion, *, is_open: bool) -> Ruling:
    """Return the same for a page that a tool of the daemon fetches, which is in no jail.

    Everything on the Internet is allowed if `is_open`, or in the mode `yolo`, which asks nobody: what is not is denied there.
    """
    is_yolo = policy.mode == "yolo"
    ruling = judge_host(policy, (*allowed, EVERYWHERE) if is_open or is_yolo else allowed, question)
    if is_yolo and ruling.action is Action.ASK and ruling.source == "mode":
        return Ruling(Action.DENY, "mode", ruling.reason)
    return ruling


def host_choice(question: HostQuestion) -> Choice:
    """Return what can be allowed beyond the command that asks: the host on its web ports, or on this port only."""
    host, port = question.remote
    is_web = port in WEB_PORTS and address_of(host) is None
    match = host if is_web else str(question.remote)
    text = f"{host}, on ports 80 and 443" if is_web else f"only {match}"
    return Choice(SAME, text, (PermissionRule(NETWORK, Action.ALLOW, match),), (SESSION, ALWAYS))


def malformed(rules: Iterable[PermissionRule]) -> list[str]:
    """Return what is wrong with rules for `network`, as sentences for people."""
    found = []
    for rule in rules:
        try:
            if rule.tool == NETWORK and rule.match != EVERYTHING:
                parse_rule(rule.match)
        except HostError as error:
            does = "is left out" if rule.action is Action.ALLOW else "holds for all hosts"
            found.append(f"a rule for {NETWORK} in config.toml {does}, because its match is malformed: {error}")
    return found


def _by_rules(policy: Policy, remote: HostPort) -> Ruling | None:
    for action in (Action.DENY, Action.ASK):
        if rule := _first((*policy.rules, *policy.narrowing), action, remote):
            return Ruling(action, "rule", f"{remote} is {_DOES[action]} by a rule ({_shown(rule)})")
    if rule := _first(policy.rules, Action.ALLOW, remote):
        return Ruling(Action.ALLOW, "rule", f"{remote} is allowed by a rule ({_shown(rule)})")
    return None


_DOES = {Action.DENY: "denied", Action.ASK: "asked about"}


def _shown(rule: PermissionRule) -> str:
    return " ".join(toml(rule).split("\n")).strip()


def _first(rules: Iterable[PermissionRule], action: Action, remote: HostPort) -> PermissionRule | None:
    return next((rule for rule in rules if rule.action is action and _applies(rule, remote)), None)


def _applies(rule: PermissionRule, remote: HostPort) -> bool:
    if rule.action is Action.ALLOW:
        # A rule that allows every tool is about questions, and must not open the network of what is confined.
        host = _read(rule.match) if rule.tool == NETWORK else None
        return host is not None and host.covers(remote)
    if not fnmatchcase(NETWORK, rule.tool):
        return False
    if rule.match == EVERYTHING:
        return True
    if rule.tool != NETWORK:
        return False  # its match is about the arguments of tools
    host = _read(rule.match)
    return host is None or replace(host, ports=host.ports if _names_port(rule.match) else None).covers(remote)


def _names_port(match: str) -> bool:
    return match.rpartition(":")[2].isdecimal() and not match.endswith("]")


@lru_cache(maxsize=256)
def _read(match: str) -> HostRule | None:
    try:
        return parse_rule(match)
    except HostError:
        return None
