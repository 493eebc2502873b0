"""What can be allowed in addition to the pending call."""

import pytest

from zotd.core import choices, permissions
from zotd.core.permissions import Action, PermissionQuery, Policy, judge


def bash(command, extension=None):
    return PermissionQuery("bash", extension, is_safe=False, args={"command": command})


def write(*paths, tool="write"):
    return PermissionQuery(tool, None, is_safe=False, args={"path": paths[0]}, paths=paths)


def offered(question, cwd="/w", home="/home/ann"):
    return {choice.id: choice for choice in choices.choices_for(question, cwd=cwd, home=home)}


def prefix(command):
    found = offered(bash(command)).get("prefix")
    return None if found is None else [rule.match for rule in found.rules]


def allowed(question, *granted):
    return judge(Policy("ask", granted=granted), question).action is Action.ALLOW


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("npm test -- --watch", "npm test *"),
        ("npm test", "npm test *"),
        ("npm run build -- -x", "npm run build *"),
        ("cargo test --all", "cargo test *"),
        ("git commit -m 'a b'", "git commit *"),
        ("pytest -q tests/a.py", "pytest *"),
        ("ls src", "ls *"),
        ("./run.sh all", "./run.sh all *"),
        ("python -m pytest -q", "python -m pytest *"),
        ("uv run pytest -q", "uv run pytest *"),
        ("npx eslint .", "npx eslint *"),
    ],
)
def test_a_prefix_includes_the_subcommand(command, expected):
    assert prefix(command) == [expected]
    rules = offered(bash(command))["prefix"].rules
    assert allowed(bash(command), *rules)
    assert judge(Policy("ask", rules=rules), bash(command)).action is Action.ALLOW


@pytest.mark.parametrize(
    "command",
    [
        *(
            "sh -c 'npm test'",
            "bash x.sh",
            "python -c 'x'",
            "python3.11 a.py",
            "node -e x",
            "perl x",
            "eval x",
            "source x",
        ),
        *("sudo npm test", "env X=1 npm test", "xargs npm", "timeout 5 npm test", "ssh host ls", "busybox ls"),
        *("uv run python -c x", "uv run -q x", "npx -y x", "npx sh -c x", "bundle exec ruby -e x"),
        *("rm -rf x", "/bin/rm x", "dd if=a", "find . -name x", "awk x", "sed -i x", "kill 1"),
        *("git -C x status", "git -c alias.x='!y' x", "git log --output=x", "docker run -it x", "sort -o x y"),
        *("X=1 npm test", "npm test > out", "npm test 2>&1", "npm test &", "echo $(ls)", "a\nb", "(npm test)"),
        *("npm test && rm x", "npm test; sh x", "npm test | sh", "npm test && X=1 ls", "if a; then b; fi", "$X test"),
        *("! { ls x; }", "npm test |& cat", "npm test # x", "export X=1; npm test", "printf -v PATH x && npm test"),
        " ; ".join(["npm test"] * (choices.PARTS_MAX + 1)),
    ],
)
def test_programs_that_run_others_or_destroy_data_get_no_prefix(command):
    assert prefix(command) is None


def test_each_command_of_a_line_gets_a_prefix_for_the_session_only():
    question = bash("cd web && npm test -- -x; git status | head -5")
    found = offered(question)
    assert list(found) == ["prefix"]
    assert found["prefix"].text == "cd web, npm test *, git status *, head *"
    assert found["prefix"].scopes == ("session",)
    rules = found["prefix"].rules
    assert allowed(question, *rules)
    assert allowed(bash("git status && npm test"), *rules)
    assert judge(Policy("ask", rules=rules), question).action is Action.ASK


@pytest.mark.parametrize(
    "command",
    ["cd /tmp && npm test", "npm test && rm x", "npm test > x", "npm test $(rm x)", "npm test\nrm x", "X=1 npm test",
     "npm testing", "npm test & rm x", "npm test |& sh", "git log | head -5 && rm x", "git -c a=b status | head"],
)  # fmt: skip
def test_an_allowed_prefix_allows_no_other_command(command):
    rules = offered(bash("cd web && npm test -- -x; git status | head -5"))["prefix"].rules
    assert not allowed(bash(command), *rules)


def test_deny_rules_and_read_only_mode_override_an_allowed_prefix():
    rules = offered(bash("npm test"))["prefix"].rules
    denial = permissions.PermissionRule("bash", Action.DENY, "npm *")
    assert judge(Policy("ask", rules=[denial], granted=rules), bash("npm test")).action is Action.DENY
    assert judge(Policy("read-only", granted=rules), bash("npm test")).action is Action.DENY


def test_the_edits_choice_excludes_files_outside_and_steering_directories():
    found = offered(write("/w/src/a.py", "src/a.py"))
    assert (found["edits"].text, found["edits"].scopes) == ("every edit and write in /w", ("session",))
    rules = found["edits"].rules
    assert allowed(write("/w/b", "b", tool="edit"), *rules)
    for paths in [("/x/a", "../x/a"), ("/w/a", "a", "/etc/passwd", "../etc/passwd"), ("/w/.git/config", ".git/config"),
                  ("/w/.zot/config.toml", ".zot/config.toml"), ("/w/s/.GIT/hooks/x", "s/.GIT/hooks/x")]:  # fmt: skip
        assert not allowed(write(*paths), *rules)
        assert "edits" not in offered(write(*paths))
    assert not allowed(bash("touch /w/a"), *rules)


@pytest.mark.parametrize("cwd", ["/", "/home", "/home/ann"])
def test_a_directory_that_contains_the_home_gets_no_edits_choice(cwd):
    assert "edits" not in offered(write(f"{cwd.rstrip('/')}/a", "a"), cwd=cwd)


def test_an_extensions_tool_can_only_be_allowed_for_all_arguments():
    assert [choice.text for choice in offered(bash("npm test", "theirs")).values()] == ["every call of bash"]
