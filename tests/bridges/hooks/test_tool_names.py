"""Calls in the words of hooks, and what hooks change in the words of zot."""

import pytest

from zotd.bridges.hooks.tool_names import TranslatedCall


def edit(*pairs):
    return {"path": "a.py", "edits": [{"oldText": old, "newText": new} for old, new in pairs]}


@pytest.mark.parametrize(
    ("tool", "args", "name", "given"),
    [
        ("bash", {"command": "ls", "timeout": 2}, "Bash", {"command": "ls", "timeout": 2000}),
        ("read", {"path": "a.py", "limit": 5}, "Read", {"file_path": "/w/a.py", "limit": 5}),
        ("write", {"path": "/x/a", "content": "b"}, "Write", {"file_path": "/x/a", "content": "b"}),
        ("edit", edit(("a", "b")), "Edit", {"file_path": "/w/a.py", "old_string": "a", "new_string": "b"}),
        ("grep", {"pattern": "x", "ignoreCase": True}, "Grep", {"pattern": "x", "-i": True}),
        ("glob", {"pattern": "*.py", "path": "src"}, "Glob", {"pattern": "*.py", "path": "src"}),
        ("skill", {"name": "release"}, "Skill", {"skill": "release"}),
        ("files__read", {"path": "a"}, "mcp__files__read", {"path": "a"}),
        ("weather", {"city": "Berlin"}, "weather", {"city": "Berlin"}),
    ],
)
def test_a_call_has_the_name_and_the_fields_that_hooks_know(tool, args, name, given):
    use = TranslatedCall(tool, args, "/w")
    assert (use.name, use.input) == (name, given)
    assert use.changed(given) == args


def test_several_edits_are_joined_and_listed():
    use = TranslatedCall("edit", edit(("a", "b"), ("c", "d")), "/w")
    assert use.input == {
        "file_path": "/w/a.py",
        "old_string": "a\nc",
        "new_string": "b\nd",
        "edits": [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}],
    }
    assert use.names == ("Edit", "MultiEdit")


@pytest.mark.parametrize(
    ("tool", "args", "updated", "changed"),
    [
        ("bash", {"command": "rm a"}, {"command": "echo"}, {"command": "echo"}),
        ("bash", {"command": "ls", "timeout": 2}, {"timeout": 500}, {"command": "ls", "timeout": 0.5}),
        ("bash", {"command": "ls"}, {"run_in_background": True}, {"command": "ls"}),
        ("write", {"path": "a", "content": "b"}, {"file_path": "/w/c"}, {"path": "/w/c", "content": "b"}),
        ("edit", edit(("a", "b")), {"new_string": "c"}, edit(("a", "c"))),
        ("edit", edit(("a", "b"), ("c", "d")), {"new_string": "c"}, edit(("a", "b"), ("c", "d"))),
        ("edit", edit(("a", "b"), ("c", "d")), {"edits": [{"old_string": "a", "new_string": "e"}]}, edit(("a", "e"))),
        ("files__read", {"path": "a", "limit": 1}, {"path": "b"}, {"path": "b", "limit": 1}),
    ],
)
def test_what_a_hook_changes_is_changed_and_the_rest_stays(tool, args, updated, changed):
    assert TranslatedCall(tool, args, "/w").changed(updated) == changed
