"""Subagents below the sessions that have begun them."""

from zotd.client.families import in_families, indented

PARENTS = {"a": None, "b": None, "a1": "a", "a2": "a", "a11": "a1", "x": "gone"}


def test_subagents_follow_their_parents_in_the_order_of_the_list():
    order = ["a11", "b", "a2", "x", "a", "a1"]
    found = list(in_families(order, str, PARENTS.get))
    assert found == [("b", 0), ("x", 0), ("a", 0), ("a2", 1), ("a1", 1), ("a11", 2)]


def test_a_circle_of_parents_is_left_out():
    assert list(in_families(["a", "b"], str, {"a": "b", "b": "a"}.get)) == []


def test_names_show_the_depth():
    assert [indented("name", depth) for depth in range(3)] == ["name", "└ name", "  └ name"]
