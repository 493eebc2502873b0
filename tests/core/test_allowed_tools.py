"""What a command's `allowed-tools` allows."""

import pytest

from zotd.core.allowed_tools import limit_of, not_understood
from zotd.core.permissions import PermissionQuery
from zotd.core.records import AllowedTools

BASH = {
    "Bash": {"rm -rf x": True, "a; b > c": True},
    "bash": {"rm -rf x": True},
    "Bash(git add:*)": {
        "git add": True,
        "git add . && git add b": True,
        "git addx": False,
        "git commit": False,
        "git add a > b": False,
        "git add $(rm x)": False,
        "git add a\nrm x": False,
        "X=1 git add a": False,
        "git add a; rm x": False,
        "git -c alias.add='!rm x' add a": False,
    },
    "Bash(npm test)": {"npm test": True, "npm test -- x": False},
    "Bash(git * main)": {"git push main": True, "git push other": False, "git log --output=x main": False},
    "Bash([a] x:*)": {"[a] x y": False, "a x": False},
    "Read": {"cat x": False},
    "": {"true": False},
}
FILES = {
    "Edit(src/**)": {"src/a": True, "src/b/c": True, "srcx/a": False, "/src/a": False},
    "Edit(src/a.py)": {"src/a.py": True, "src/a.pyc": False},
    "Edit(//etc/x)": {"/etc/x": True, "etc/x": False},
    "Edit(~/x/**)": {"~/x/y": True, "x/y": False},
    "MultiEdit": {"src/a": True},
    "Write": {"src/a": False},
}


def refusal(entry, query):
    return limit_of(AllowedTools("go", [entry] if entry else []))(query)


@pytest.mark.parametrize(("entry", "command"), [(entry, command) for entry in BASH for command in BASH[entry]])
def test_entries_for_bash_allow_lines_of_which_each_command_is_meant(entry, command):
    reason = refusal(entry, PermissionQuery("bash", None, False, {"command": command}))
    assert (reason == "") is BASH[entry][command]
    assert reason == "" or reason.startswith("bash is denied: /go allows only these tools: ")


@pytest.mark.parametrize(("entry", "path"), [(entry, path) for entry in FILES for path in FILES[entry]])
def test_entries_for_files_allow_one_or_what_is_in_a_directory(entry, path):
    query = PermissionQuery("edit", None, False, {"path": path}, paths=(path,))
    assert (refusal(entry, query) == "") is FILES[entry][path]


@pytest.mark.parametrize(
    ("entry", "tool", "allowed"),
    [
        ("mcp__shop", "shop__buy", True),
        ("mcp__shop__*", "shop__buy", True),
        ("mcp__shop__buy", "shop__buy", True),
        ("mcp__shop__buy", "shop__sell", False),
        ("mcp__shop", "shopping__buy", False),
        ("weather", "weather", True),
        ("*", "weather", True),
        ("Bash", "bash", False),  # of an extension
    ],
)
def test_entries_for_tools_of_extensions(entry, tool, allowed):
    assert (refusal(entry, PermissionQuery(tool, "some", False, {})) == "") is allowed


def test_what_is_not_understood_allows_nothing_and_is_named():
    odd = ["WebFetch(domain:x)", "Edit(*.md)", "Edit(/src/**)", "Edit(../x)", "Bash(", "Edit(**)"]
    assert not_understood([*odd, "Bash", "Edit(src/**)", "WebFetch"]) == odd
    query = PermissionQuery("edit", None, False, {"path": "a.md"}, paths=("a.md",))
    assert all(refusal(entry, query) for entry in odd)
