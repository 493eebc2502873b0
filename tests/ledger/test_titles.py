"""What a session is called that nobody has named."""

import pytest
from prompt_toolkit.utils import get_cwidth

from zotd.ledger.titles import TITLE_COLUMNS, title_of


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("", ""),
        (" \n\t\n", ""),
        ("\n  mend the door\nand the roof", "mend the door"),
        ("Fix the flaky test in CI. It fails on Mondays.", "Fix the flaky test in CI"),
        ("Why does this fail? See the log below.", "Why does this fail?"),
        ("Hi. Please rename the module a.py to b.py", "Hi. Please rename the module a.py to b.py"),
        (
            "please look at the tests of the payment module and tell me why they fail on Mondays",
            "please look at the tests of the payment module and tell me…",
        ),
        ("x" * 100, "x" * 59 + "…"),
        ("日本語" * 30, "日本語" * 9 + "日本…"),
    ],
)
def test_a_title_is_the_first_sentence_cut_between_words(prompt, title):
    assert title_of(prompt) == title
    assert get_cwidth(title) <= TITLE_COLUMNS
