"""Which rule decides about a host."""

import pytest

from zotd.core.permissions import Action, PermissionRule, Policy
from zotd.permissions.host_rules import host_choice, judge_host, malformed
from zotd.proxy import HostQuestion, parse_rule
from zotd.proxy.hosts import HostPort

ALLOW, ASK, DENY = Action.ALLOW, Action.ASK, Action.DENY


def judged(*rules, remote=("example.org", 443), allowed=(), **policy):
    found = tuple(PermissionRule(*rule) for rule in rules)
    policy = {name: tuple(PermissionRule(*rule) for rule in rules) for name, rules in policy.items()}
    question = HostQuestion(HostPort(*remote))
    return judge_host(Policy("workspace", found, **policy), list(map(parse_rule, allowed)), question).action


@pytest.mark.parametrize(
    ("rules", "action"),
    [
        ([], ASK),
        ([("network", ALLOW, "example.org")], ALLOW),
        ([("network", ALLOW, "*.org")], ALLOW),
        ([("network", ALLOW, "example.org:8443")], ASK),
        ([("network", ALLOW, "example.org"), ("network", DENY, "*.org")], DENY),
        ([("network", ALLOW, "example.org"), ("network", ASK, "example.org")], ASK),
        ([("*", ALLOW, "*")], ASK),
        ([("net*", ALLOW, "example.org")], ASK),
        ([("*", DENY, "*")], DENY),
        ([("bash", DENY, "*")], ASK),
        ([("*", DENY, "example.org")], ASK),
        ([("network", DENY, "http://example.com/")], DENY),
        ([("network", ALLOW, "http://example.org/")], ASK),
    ],
)
def test_rules_for_hosts(rules, action):
    assert judged(*rules) == action


def test_a_denial_without_a_port_holds_for_all_and_one_with_a_port_for_this():
    assert judged(("network", DENY, "example.org"), remote=("example.org", 22)) == DENY
    assert judged(("network", DENY, "example.org:443"), remote=("example.org", 22)) == ASK


def test_every_host_is_not_every_special_address():
    assert judged(("network", ALLOW, "*"), remote=("10.0.0.1", 443)) == ASK
    assert judged(("network", DENY, "*"), remote=("10.0.0.1", 443)) == DENY


def test_a_workspace_can_only_narrow():
    assert judged(allowed=["example.org"], narrowing=[("network", DENY, "example.org")]) == DENY
    assert judged(narrowing=[("network", ALLOW, "example.org")]) == ASK


def test_the_configuration_allows_unless_a_rule_says_otherwise():
    assert judged(allowed=["example.org"]) == ALLOW
    assert judged(("network", ASK, "example.org"), allowed=["example.org"]) == ASK


def test_a_grant_of_the_session_answers_a_question_and_overrides_no_denial():
    granted = [("network", ALLOW, "example.org")]
    assert judged(granted=granted) == ALLOW
    assert judged(("network", ASK, "*"), granted=granted) == ALLOW
    assert judged(("network", DENY, "*"), granted=granted) == DENY


@pytest.mark.parametrize(
    "remote", [("example.org", 80), ("example.org", 8443), ("127.0.0.3", 80), ("fd00::1", 8080), ("::1", 443)]
)
def test_what_is_offered_covers_the_question_and_no_other_special_address(remote):
    (rule,) = host_choice(HostQuestion(HostPort(*remote))).rules
    assert judged((rule.tool, rule.action, rule.match), remote=remote) == ALLOW
    assert judged((rule.tool, rule.action, rule.match), remote=("127.0.0.4", 80)) == ASK


def test_a_malformed_rule_is_named_with_what_becomes_of_it():
    rules = [PermissionRule("network", action, "http://x") for action in (ALLOW, DENY)]
    kept, left = malformed(rules)
    assert "is left out" in kept
    assert "holds for all hosts" in left
    assert malformed([PermissionRule("network", DENY), PermissionRule("bash", DENY, "rm *")]) == []
