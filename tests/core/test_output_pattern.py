import time

import pytest

from zotd.core.output_pattern import LineFinder, PatternError


@pytest.mark.parametrize(
    ("pattern", "output", "line"),
    [
        ("ready", "one\nREADY to serve\n", "READY to serve"),
        ("listening*8080", "Listening on http://localhost:8080/\n", "Listening on http://localhost:8080/"),
        ("listening.*8080", "listening on 8080", "listening on 8080"),
        ("error|ready", "an Error came\n", "an Error came"),
        ("8080*listening", "listening on 8080\n", None),
        ("two*one", "two\none\n", None),
        ("aa*a", "aa\n", None),
        ("größe", "GRÖSSE größe\n", "GRÖSSE größe"),
    ],
)
def test_a_line_has_the_texts_of_a_pattern_in_their_order(pattern, output, line):
    assert LineFinder(pattern).feed(output.encode()) == line


def test_a_line_may_come_in_pieces_and_counts_before_its_end():
    finder = LineFinder("ready to*serve")
    assert finder.feed(b"one\nread") is None
    assert finder.feed(b"y to ") is None
    assert finder.feed(b"serve") == "ready to serve"


@pytest.mark.parametrize("pattern", ["*", "a||b", "|", "a|*"])
def test_a_pattern_without_text_is_refused(pattern):
    with pytest.raises(PatternError, match="no text"):
        LineFinder(pattern)


def test_a_regular_expression_is_refused():
    with pytest.raises(PatternError, match="backslashes"):
        LineFinder(r"port \d+")


def test_no_pattern_takes_longer_than_the_output_is_long():
    """As a regular expression, this pattern takes longer than anybody lives."""
    finder = LineFinder("*".join("a" * 30) + "*b")
    began = time.process_time()
    for _ in range(16):
        assert finder.feed(b"a" * 65_536) is None
    assert time.process_time() - began < 30
