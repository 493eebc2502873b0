"""Which row is where, and which one Enter takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zottui.choice import ListChoice
from zottui.editor.ranking import Match, best, match, nearest, ranked

NAMES = st.text(st.sampled_from("abc-"), min_size=1, max_size=8)
CHOICES = st.lists(
    st.builds(ListChoice, NAMES, st.text(st.sampled_from("abc "), max_size=10)), unique_by=lambda c: c.name
)


def names(found):
    return [choice.name for choice in found]


@pytest.mark.parametrize(
    ("name", "what", "query", "how"),
    [
        ("clear", "", "clear", Match.EXACT),
        ("clear", "", "CLEAR", Match.EXACT),
        ("clearnotes", "", "clear", Match.PREFIX),
        ("reload-ext", "", "ext", Match.WORD),
        ("compact", "", "cpt", Match.SUBSEQUENCE),
        ("exit", "leave; the session is kept", "ses", Match.DESCRIPTION),
        ("exit", "leave", "eave", None),
        ("context", "", "ext", Match.SUBSEQUENCE),
    ],
)
def test_a_name_fits_in_one_way(name, what, query, how):
    assert match(ListChoice(name, what), query) is how


def test_names_come_before_descriptions():
    choices = [
        ListChoice("pr-comments", "comments of a change"),
        ListChoice("compact"),
        ListChoice("exit", "comes back"),
    ]
    assert names(ranked(choices, "com")) == ["compact", "pr-comments", "exit"]


def test_an_exact_name_is_first_although_another_begins_with_it():
    choices = [ListChoice("clearnotes"), ListChoice("clear"), ListChoice("nuclear")]
    assert names(ranked(choices, "clear"))[0] == "clear"


def test_enter_takes_the_best_where_it_stands():
    choices = ranked([ListChoice("cancel-ear"), ListChoice("clear")], "clear")
    assert (names(choices), best(choices, "clear")) == (["cancel-ear", "clear"], 1)


@given(CHOICES, st.text(st.sampled_from("abc-"), min_size=1, max_size=4), st.text(st.sampled_from("abc-"), max_size=3))
def test_typing_more_takes_rows_away_and_never_reorders_the_rest(choices, query, more):
    before, after = names(ranked(choices, query)), names(ranked(choices, query + more))
    assert after == [name for name in before if name in after]


@given(CHOICES, st.text(st.sampled_from("abc-"), max_size=6))
def test_a_match_of_a_query_matches_each_of_its_prefixes(choices, query):
    found = set(names(ranked(choices, query)))
    assert all(found <= set(names(ranked(choices, query[:n]))) for n in range(len(query)))


@given(CHOICES, st.text(st.sampled_from("abc-"), min_size=1, max_size=6))
def test_enter_takes_what_fits_best(choices, query):
    found = ranked(choices, query)
    if found:
        fits = [how for choice in found if (how := match(choice, query)) is not None]
        assert match(found[best(found, query)], query) == min(fits)


@pytest.mark.parametrize(
    ("typed", "meant"), [("exot", "exit"), ("Exi", "exit"), ("modle", "model"), ("zzz", None), ("", None)]
)
def test_nearest_finds_the_name_for_a_typing_error(typed, meant):
    assert nearest(typed, ["exit", "model", "mode", "compact"]) == meant
