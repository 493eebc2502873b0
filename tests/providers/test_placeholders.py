"""Base URLs with placeholders for environment variables."""

import pytest

from zotd.providers.shared.placeholders import PlaceholderError, filled, names

URL = "https://{A|B:main}.{RESOURCE}.example.com/v1"


def test_the_first_variable_that_is_set_is_used():
    assert names(URL) == ("A", "B", "RESOURCE")
    assert filled(URL, {"B": "two", "RESOURCE": "r-1"}) == "https://two.r-1.example.com/v1"
    assert filled(URL, {"A": "one", "B": "two", "RESOURCE": "r"}) == "https://one.r.example.com/v1"
    assert filled(URL, {"A": "", "RESOURCE": "r"}) == "https://main.r.example.com/v1"


def test_a_placeholder_without_a_value_says_which_variable_to_set():
    with pytest.raises(PlaceholderError, match="set X or Y"):
        filled("https://{X|Y}.example.com", {"Z": "z"})


@pytest.mark.parametrize("value", ["evil.example", "evil.example/", "a#", "a@b", "-a", "a b", "a\n", "{A}", "x" * 64])
def test_a_value_cannot_choose_another_host(value):
    with pytest.raises(PlaceholderError, match="one label of a host name"):
        filled("https://{A}.example.com", {"A": value})


def test_braces_that_are_no_placeholder_stay():
    assert filled("https://x.example/{0}/{}", {}) == "https://x.example/{0}/{}"
