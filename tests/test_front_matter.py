"""Fields at the beginning of Markdown files."""

import pytest

from zotd import front_matter

LISTS = {
    "a: [x, y]": ["x", "y"],
    'a: [Bash(git log, x), "q, r"]': ["Bash(git log, x)", "q, r"],
    "a:\n- x\n- y(z: 1)": ["x", "y(z: 1)"],
    "a:\n  - 'x'\n  - y  # why": ["x", "y"],
    "a: x, y": None,
    "a:\n  b: c": None,
}


def parsed(source):
    found = front_matter.parse(source)
    assert found is not None
    return found


@pytest.mark.parametrize("source", LISTS)
def test_lists_are_read_in_both_notations(source):
    found = parsed(f"---\n{source}\nz: 1\n---\nText")
    assert (found.lists.get("a"), found.values["z"], found.text) == (LISTS[source], "1", "Text")


def test_lines_that_are_no_fields_are_named():
    found = parsed("---\n# a remark\n\na: 1\nallowed-tools Bash\n{b: 2}\n---\n")
    assert (found.values, found.unread) == ({"a": "1"}, ["allowed-tools Bash", "{b: 2}"])


@pytest.mark.parametrize("source", ["", "Text\n---\na: 1\n---\n", "---\na: 1\n"])
def test_a_file_without_fields_has_none(source):
    assert front_matter.parse(source) is None
