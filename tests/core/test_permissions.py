"""Decisions of rules and modes about calls."""

import hashlib
import tomllib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zotd.core import permissions
from zotd.core.permissions import Action, PermissionQuery, PermissionRule, Policy, judge


def bash(command):
    return PermissionQuery("bash", None, is_safe=False, args={"command": command})


def write(*paths, **fields):
    fields = {"extension": None, "is_safe": False, "args": {"path": paths[0] if paths else "x"}} | fields
    return PermissionQuery("write", paths=paths, **fields)


READ = PermissionQuery("read", None, is_safe=True, args={"path": "a"}, paths=("/w/a", "a"))
WEATHER = PermissionQuery("weather", "weather", is_safe=False, args={"city": "Berlin"})


def allow(tool, match="*"):
    return PermissionRule(tool, Action.ALLOW, match)


def ask(tool, match="*"):
    return PermissionRule(tool, Action.ASK, match)


def deny(tool, match="*"):
    return PermissionRule(tool, Action.DENY, match)


def ruled(question, *rules, mode="ask", **policy):
    return judge(Policy(mode, rules=rules, **policy), question)


def actions(rule, questions):
    return [ruled(question, rule).action.value for question in questions]


# --- modes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("yolo", ["allow", "allow", "allow", "allow"]),
        ("workspace", ["allow", "ask", "ask", "ask"]),
        ("ask", ["allow", "ask", "ask", "ask"]),
        ("read-only", ["allow", "deny", "deny", "deny"]),
        ("of-a-newer-version", ["allow", "deny", "deny", "deny"]),
    ],
)
def test_the_mode_decides_calls_without_a_rule(mode, expected):
    assert [ruled(one, mode=mode).action.value for one in (READ, write("/w/a"), bash("ls"), WEATHER)] == expected


@pytest.mark.parametrize("question", [READ, write("/w/a"), bash("ls")])
def test_in_the_mode_workspace_a_jail_takes_the_place_of_questions_up_to_its_border(question):
    inside, beyond = replace(question, is_confined=True), replace(question, border="read /secret")
    assert [ruled(one, mode="workspace").action.value for one in (inside, beyond)] == ["allow", "ask"]
    assert "it would read /secret" in ruled(beyond, mode="workspace").reason
    assert [ruled(one, mode="read-only").action for one in (inside, beyond)] == [
        ruled(question, mode="read-only").action
    ] * 2


def test_rules_precede_the_jail():
    inside, beyond = replace(bash("ls"), is_confined=True), replace(write("/w/a"), border="change /w/a")
    assert [ruled(inside, rule("bash"), mode="workspace").action for rule in (deny, ask)] == ["deny", "ask"]
    assert ruled(beyond, allow("write", "/w/a"), mode="workspace").action == "allow"
    assert ruled(beyond, granted=[allow("write", "/w/a")], mode="workspace").source == "session"


def test_an_extensions_tool_needs_approval_even_if_it_claims_to_be_safe():
    claims = PermissionQuery("peek", "weather", is_safe=True, args={})
    assert [ruled(claims, mode=mode).action.value for mode in ("workspace", "ask", "read-only")] == [
        "ask",
        "ask",
        "deny",
    ]


def test_a_policy_is_open_only_without_any_rule():
    assert Policy("yolo").is_open
    assert not Policy("ask").is_open
    assert not Policy("yolo", rules=[deny("x")]).is_open
    assert not Policy("yolo", narrowing=[deny("x")]).is_open


def test_the_narrowest_mode_permits_least():
    assert permissions.narrowest("yolo", "ask", None) == permissions.narrowest("workspace", "ask") == "ask"
    assert permissions.narrowest("workspace", "yolo") == "workspace"
    assert permissions.narrowest("read-only", "ask") == "read-only"
    assert permissions.narrowest("yolo", "of-a-newer-version") == "of-a-newer-version"
    assert permissions.narrowest(None) == "yolo"


# --- precedence -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", permissions.MODES)
def test_deny_precedes_ask_precedes_allow_precedes_mode_in_any_order(mode):
    rules = [allow("bash"), ask("bash"), deny("bash")]
    for some, expected in [(rules, "deny"), (rules[:2], "ask"), (rules[:1], "allow")]:
        assert ruled(bash("ls"), *some, mode=mode).action == expected
        assert ruled(bash("ls"), *reversed(some), mode=mode).action == expected


def test_a_workspace_rule_may_ask_and_deny_but_not_allow():
    assert ruled(bash("ls"), narrowing=[allow("bash")]).action == "ask"
    assert ruled(bash("ls"), allow("bash"), narrowing=[ask("bash")]).action == "ask"
    assert ruled(bash("ls"), allow("bash"), mode="yolo", narrowing=[deny("bash")]).action == "deny"


def test_a_session_grant_replaces_approvals_but_no_denials():
    granted = [allow("bash", "git push")]
    assert ruled(bash("git push"), granted=granted).source == "session"
    assert ruled(bash("git push"), ask("bash"), granted=granted).action == "allow"
    assert ruled(bash("git push"), deny("bash"), granted=granted).action == "deny"
    assert ruled(bash("git push"), mode="read-only", granted=granted).action == "deny"
    assert ruled(bash("git push --force"), granted=granted).action == "ask"


def test_a_ruling_names_its_source_and_a_denial_suggests_an_alternative():
    assert [ruled(READ, mode=mode).source for mode in ("yolo", "ask")] == ["yolo", "mode"]
    by_rule = ruled(bash("rm x"), deny("bash", "rm *"))
    assert (by_rule.source, 'match = "rm *"' in by_rule.reason) == ("rule", True)
    assert "ask the user" in by_rule.reason
    assert "read-only" in ruled(bash("ls"), mode="read-only").reason
    assert "this workspace" in ruled(bash("ls"), narrowing=[deny("*")]).reason


def test_the_tool_of_a_rule_is_a_case_sensitive_glob():
    assert ruled(WEATHER, allow("wea*")).action == "allow"
    assert ruled(WEATHER, allow("Weather")).action == "ask"
    assert ruled(WEATHER, deny("WEATHER")).action == "ask"


# --- commands ---------------------------------------------------------------------------------------------------------

COMPOUND = [
    *("git a; rm -rf x", "git a & b", "git a && b", "git a | sh", "git $(rm x)", "git `rm x`", "git a\nrm x"),
    *("git $((a[$(rm x)]))", "git ${x@P}", "git $[a]", "git <(rm x)", "git >(rm x)", "git a > ~/.bashrc", "git a >> b"),
    *("git a < /dev/tcp/h/1", "git a\rrm x", "git a\x0brm", "git a\x00", "git \x1b[2K"),
]


@pytest.mark.parametrize("command", COMPOUND)
@pytest.mark.parametrize("pattern", ["git *", "*", "literal"])
def test_a_command_that_may_run_or_write_something_else_matches_no_allow(command, pattern):
    match = permissions.literally(command) if pattern == "literal" else pattern
    assert ruled(bash(command), allow("bash", match)).action == "ask"
    assert ruled(bash(command), granted=[allow("bash", match)]).action == "ask"
    assert ruled(bash(command), deny("bash", "git*"), mode="yolo").action == "deny"


def test_an_allow_must_match_the_whole_command():
    commands = [bash(command) for command in ("git status", "git", "  git status", "xgit status", "GIT status")]
    assert actions(allow("bash", "git *"), commands) == ["allow", "allow", "ask", "ask", "ask"]
    assert ruled(bash('git log --format="%h\t%s"'), allow("bash", "git *")).action == "allow"
    assert ruled(bash("ls $HOME"), allow("bash", "ls *")).action == "allow"


def test_a_deny_matches_despite_blanks_and_other_case():
    for command in ("rm -rf x", " rm  -rf\tx", "\trm -rf x", "RM -rf x"):
        assert ruled(bash(command), deny("bash", "rm -rf *"), mode="yolo").action == "deny", command


@pytest.mark.parametrize("args", [{}, {"command": None}, {"command": ["git"]}])
def test_a_missing_command_is_never_allowed_by_a_rule(args):
    assert ruled(PermissionQuery("bash", None, is_safe=False, args=args), allow("bash", "*")).action == "ask"


def test_an_extensions_bash_is_not_treated_as_a_shell():
    theirs = PermissionQuery("bash", "ext", is_safe=False, args={"command": "git status"})
    assert ruled(theirs, allow("bash", "git *")).action == "ask"
    assert ruled(theirs, deny("bash", "*git*")).action == "deny"


@given(st.text(), st.sampled_from([";", "&", "|", "$(", "`", "\n"]), st.text())
def test_no_compound_line_matches_an_allow_whatever_its_text(before, joint, after):
    command = before + joint + after
    assert ruled(bash(command), allow("*", "*"), allow("bash", permissions.literally(command))).action == "ask"


# --- paths ------------------------------------------------------------------------------------------------------------

INSIDE = ("/home/ann/shop/src/a.py", "src/a.py", "~/shop/src/a.py")
LINKED = (*INSIDE, "/etc/passwd", "../../../etc/passwd")


@pytest.mark.parametrize("match", ["src/*", "src/a.py", "/home/ann/shop/*", "~/shop/*", "*.py", "*"])
def test_an_allow_is_compared_with_spellings_of_its_own_kind(match):
    assert ruled(write(*INSIDE), allow("write", match)).action == "allow"


@pytest.mark.parametrize("match", ["src/*", "/home/ann/shop/*", "*.py", "src", "SRC/*", "./src/*"])
def test_an_allow_matches_only_if_every_relevant_spelling_does(match):
    assert ruled(write(*LINKED), allow("write", match)).action == "ask"


def test_an_allow_below_the_home_does_not_match_files_elsewhere():
    assert ruled(write("/w/a", "a"), allow("write", "~/shop/*")).action == "ask"


@pytest.mark.parametrize("match", ["src/*", "/etc/*", "*passwd", "~/shop/*", "SRC/A.PY", "*"])
def test_a_deny_matches_if_any_spelling_does_in_any_case(match):
    assert ruled(write(*LINKED), deny("write", match), mode="yolo").action == "deny"


def test_a_deny_matches_any_unicode_normalisation():
    assert ruled(write("/w/caf\u0065\u0301", "cafe\u0301"), deny("write", "caf\u00e9"), mode="yolo").action == "deny"


def test_an_unresolvable_path_matches_every_deny_and_no_allow_glob():
    unknown = PermissionQuery("write", None, is_safe=False, args={"path": "net/x"}, is_resolved=False)
    assert ruled(unknown, deny("write", "secrets/*"), mode="yolo").action == "deny"
    assert ruled(unknown, allow("write", "*x*")).action == "ask"
    assert ruled(unknown, allow("write")).action == "allow"
    assert permissions.rule_for(unknown) is None


def test_rules_match_canonical_json_if_there_is_no_path():
    assert ruled(WEATHER, allow("weather", '{"city":"B*"}')).action == "allow"
    assert ruled(WEATHER, deny("weather", "*berlin*"), mode="yolo").action == "deny"


def test_an_extensions_path_argument_does_not_hide_its_other_arguments():
    args = {"path": "src/a", "command": "rm -rf"}
    theirs = PermissionQuery("run", "shell", is_safe=False, args=args, paths=("/w/src/a", "src/a"))
    assert ruled(theirs, deny("run", "*rm -rf*"), mode="yolo").action == "deny"
    assert ruled(theirs, allow("run", '{"command"*')).action == "ask"


# --- unattended -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["park", "deny", "rules"])
def test_unattended_rulings_are_never_more_permissive(way):
    for ruling in (ruled(bash("ls")), ruled(bash("ls"), ask("bash")), ruled(bash("ls"), deny("bash"))):
        assert permissions.unattended(ruling, way).action is not Action.ALLOW
    allowed = ruled(READ)
    assert permissions.unattended(allowed, way) == allowed


def test_an_unattended_approval_waits_or_is_denied_with_advice():
    by_mode, by_rule = ruled(bash("ls")), ruled(bash("ls"), ask("bash"))
    found = [
        permissions.unattended(one, way).action.value for way in ("park", "deny", "rules") for one in (by_mode, by_rule)
    ]
    assert found == ["ask", "ask", "deny", "deny", "deny", "ask"]
    assert "--wait" in permissions.unattended(by_mode, "deny").reason


# --- rules made from calls --------------------------------------------------------------------------------------------


def test_the_rule_made_from_a_call_allows_only_that_call():
    for question in (bash("git commit -m 'a [b] *?'"), write("/w/a [1].py", "a [1].py")):
        rule = permissions.rule_for(question)
        assert rule is not None
        assert ruled(question, rule).action == "allow"
    assert ruled(bash("git commit -m 'a b *?'"), permissions.rule_for(bash("git commit -m 'a [b] *?'"))).action == "ask"
    assert ruled(write("/w/a 1.py", "a 1.py"), permissions.rule_for(write("/w/a [1].py", "a [1].py"))).action == "ask"
    assert permissions.rule_for(WEATHER) == allow("weather")


def test_no_rule_is_made_for_a_call_that_no_rule_can_allow():
    assert permissions.rule_for(bash("a && b")) is None
    assert permissions.rule_for(write(*LINKED)) is None


def test_a_rule_for_a_file_never_matches_in_another_project():
    assert permissions.rule_for(write("/w/a.py", "a.py")) == allow("write", "/w/a.py")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_the_toml_of_a_rule_parses_back_to_that_rule(match):
    text = permissions.toml(PermissionRule("bash", Action.ALLOW, match))
    assert tomllib.loads(text) == {"rules": [{"tool": "bash", "match": match, "action": "allow"}]}


def test_a_rule_with_a_lone_surrogate_is_refused():
    with pytest.raises(ValueError, match="surrogate"):
        permissions.toml(allow("bash", "\ud800"))


# --- digests ----------------------------------------------------------------------------------------------------------


def test_a_digest_depends_on_tool_and_arguments_but_not_on_their_order():
    one = permissions.digest("write", {"path": "a", "content": "ä"})
    assert one == permissions.digest("write", {"content": "ä", "path": "a"})
    assert len(one) == 64
    others = [
        ("edit", {"path": "a", "content": "ä"}),
        ("write", {"path": "a", "content": "a"}),
        ("write", {"path": "a"}),
    ]
    assert len({one, *(permissions.digest(tool, args) for tool, args in others)}) == 4


def test_a_digest_matches_the_documented_algorithm():
    canonical = b'{"args":{"command":"ls"},"tool":"bash"}'
    assert permissions.digest("bash", {"command": "ls"}) == hashlib.sha256(canonical).hexdigest()


@pytest.mark.parametrize(
    ("policy", "wish", "action"),
    [
        (Policy("yolo"), "ask", Action.ASK),
        (Policy("yolo"), "", Action.ALLOW),
        (Policy("ask", rules=[allow("bash", "ls")]), "ask", Action.ASK),
        (Policy("read-only"), "ask", Action.DENY),
        (Policy("ask"), "allow", Action.ALLOW),
        (Policy("ask"), "perhaps", Action.ASK),
        (Policy("ask", rules=[ask("bash")]), "allow", Action.ASK),
        (Policy("yolo", rules=[deny("bash")]), "allow", Action.DENY),
        (Policy("read-only"), "allow", Action.DENY),
    ],
)
def test_guards_may_want_a_question_or_spare_that_of_the_mode(policy, wish, action):
    question = bash("ls")
    assert permissions.advised(judge(policy, question), question, wish, "it deploys").action is action


def test_a_guard_cannot_spare_the_question_at_the_border_of_a_jail():
    question = replace(bash("ls"), border="write outside")
    ruling = judge(Policy("workspace"), question)
    assert permissions.advised(ruling, question, "allow", "").action is Action.ASK
