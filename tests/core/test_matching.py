"""Ranking of completions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zotd.core.matching import SCATTERED_MAX, Ranking, ranked

NAMES = st.text("abAB/_. é\u0130ß", max_size=12)


def found(typed, *paths, limit=50):
    return ranked(typed, paths, limit)


@pytest.mark.parametrize(
    ("typed", "best_first"),
    [
        ("set", ["a/set", "settings.py", "user_settings.py", "offset.py", "s/e/t"]),
        ("set", ["set/", "set.py", "a/mySet.py", "reset/x"]),
        ("set", ["a/ones_set_reset.py", "a/onesset.py"]),
        ("set", ["x/settings/", "settings/x.py"]),
        ("a/b", ["x/a/b", "a/b.py", "x/a/b/c", "a-b/ab"]),
        ("a/", ["a/", "a/b.py", "a/c/d"]),
        ("", ["a.py", "b/c.py"]),
        ("co", ["compact", "reload-co", "icon", "c-o"]),
        ("gpt-4o", ["openai/gpt-4o", "openai/gpt-4o-mini", "azure/old-gpt-4o-x"]),
        ("viewmod12", ["view/module12.py", "v/i/e/w/m/o/d/1/2"]),
    ],
)
def test_better_matches_come_first(typed, best_first):
    assert found(typed, *best_first) == best_first
    assert found(typed, *reversed(best_first)) == best_first


def test_equal_matches_keep_their_order():
    assert found("a", "ab", "aa", "ac") == ["ab", "aa", "ac"]


def test_matching_ignores_case():
    assert found("READ", "readme.md") == found("read", "readme.md") == ["readme.md"]
    assert found("straße", "STRASSE") == ["STRASSE"]


def test_a_path_without_one_of_the_characters_does_not_match():
    assert found("abc", "acb", "ab", "") == []


def test_better_matches_are_found_anywhere_in_a_long_list():
    ranking = Ranking("set", 3)
    noise = [f"/s{number}e/t.py" for number in range(SCATTERED_MAX + 1_000)]
    ranking.look((path, path) for path in noise)
    ranking.look([("/last/offset.py", "/last/offset.py"), ("/last/settings.py", "/last/settings.py")])
    assert ranking.best()[:2] == ["/last/settings.py", "/last/offset.py"]
    assert len(ranking.best()) == 3


@given(NAMES, st.lists(NAMES, max_size=8))
def test_every_match_contains_the_characters_in_order(typed, names):
    answer = found(typed, *names)
    assert set(answer) <= set(names)
    wanted = [name for name in names if is_in(typed.casefold(), f"/{name.casefold()}")]
    assert sorted(answer) == sorted(wanted)


@given(st.text("ab/_", min_size=1, max_size=6), st.lists(st.text("ab/_", min_size=1, max_size=8), max_size=8))
def test_an_exact_name_always_comes_first(typed, names):
    answer = found(typed, *names, typed)
    is_exact = [f"/{one}".rstrip("/").endswith(f"/{typed}".rstrip("/")) for one in answer]
    assert is_exact[0]


def is_in(typed, text):
    rest = iter(text)
    return all(character in rest for character in typed)
