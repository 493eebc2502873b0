"""Which rule decides about files outside of a jail."""

import pytest

from zotd.core.permissions import Action, PermissionRule, Policy
from zotd.permissions.file_grants import (
    ONCE_MAX,
    OnceGrants,
    granted_places,
    judge_places,
    malformed_grants,
    place_choice,
)

ALLOW, ASK, DENY = Action.ALLOW, Action.ASK, Action.DENY
HOME = "/home/ann"


def policy(*rules, **others):
    made = {name: tuple(PermissionRule(*rule) for rule in found) for name, found in others.items()}
    narrowing, granted = (made.pop(name, ()) for name in ("narrowing", "granted"))
    assert not made
    return Policy("workspace", tuple(PermissionRule(*rule) for rule in rules), narrowing, granted)


@pytest.mark.parametrize(
    ("rules", "action"),
    [
        ([], ASK),
        ([("files", ALLOW, "/srv/data")], ALLOW),
        ([("files", ALLOW, "/srv")], ALLOW),
        ([("files", ALLOW, "/srv/data/a")], ASK),
        ([("files", ALLOW, "/srv/dat*")], ASK),
        ([("files", ALLOW, "srv/data")], ASK),
        ([("files", ALLOW, "*")], ASK),
        ([("*", ALLOW, "*")], ASK),
        ([("write", ALLOW, "/srv/data")], ASK),
        ([("files", ALLOW, "/srv"), ("files", DENY, "/srv/data")], DENY),
        ([("files", ALLOW, "/srv/data"), ("files", DENY, "/srv/data/kept")], DENY),
        ([("files", ALLOW, "/srv/data"), ("files", ASK, "/srv")], ASK),
        ([("files", DENY, "nonsense")], DENY),
        ([("*", DENY, "*")], DENY),
        ([("*", DENY, "*.env")], ASK),
    ],
)
def test_rules_for_files(rules, action):
    assert judge_places(policy(*rules), ["/srv/data"], HOME).action == action


def test_what_is_denied_or_asked_about_is_not_granted():
    allowed = [("files", ALLOW, path) for path in ("/a", "/b", "/c")]
    assert granted_places(policy(*allowed), HOME) == ("/a", "/b", "/c")
    assert granted_places(policy(*allowed, ("files", DENY, "/a"), ("files", ASK, "/b")), HOME) == ("/c",)


def test_a_path_below_the_home_is_written_with_a_tilde():
    rules = policy(("files", ALLOW, "~/data"))
    assert judge_places(rules, [f"{HOME}/data"], HOME).action is ALLOW
    assert granted_places(rules, HOME) == (f"{HOME}/data",)
    assert granted_places(rules, None) == ()


def test_the_least_that_holds_for_one_place_holds_for_all():
    rules = policy(("files", ALLOW, "/a"), ("files", DENY, "/c"))
    assert judge_places(rules, ["/a", "/b"], HOME).action is ASK
    assert judge_places(rules, ["/a", "/b", "/c"], HOME).action is DENY


def test_a_session_s_grant_stands_in_for_a_question_and_not_for_a_denial():
    granted = [("files", ALLOW, "/a")]
    assert judge_places(policy(("files", ASK, "/a"), granted=granted), ["/a"], HOME).action is ALLOW
    assert judge_places(policy(("files", DENY, "/a"), granted=granted), ["/a"], HOME).action is DENY


def test_a_workspace_can_only_narrow():
    assert granted_places(policy(narrowing=[("files", ALLOW, "/a")]), HOME) == ()
    assert granted_places(policy(("files", ALLOW, "/a"), narrowing=[("files", DENY, "/a")]), HOME) == ()


def test_what_is_offered_covers_what_was_asked():
    choice = place_choice(["/srv/a", "/srv/b [1]"])
    rules = Policy("workspace", choice.rules)
    assert judge_places(rules, ["/srv/a", "/srv/b [1]"], HOME).action is ALLOW
    assert choice.scopes == ("session", "always")


def test_malformed_rules_are_named():
    rules = policy(("files", ALLOW, "data"), ("files", DENY, "x"), ("files", DENY, "*"), ("bash", ALLOW, "x")).rules
    first, second = malformed_grants(rules)
    assert "is left out" in first
    assert "holds for all files" in second


def test_what_is_allowed_once_is_for_the_same_command_and_few_are_kept():
    once = OnceGrants()
    once.add("make", ["/a"])
    once.add("make", ["/b", "/a"])
    assert (once.of("make"), once.of("make x")) == (("/a", "/b"), ())
    once.use("make")
    assert once.of("make") == ()
    for n in range(ONCE_MAX + 1):
        once.add(str(n), ["/a"])
    assert (once.of("0"), once.of("1")) == ((), ("/a",))
