import errno

import pytest

from zotd.exthost.process import how_it_ended, why_not_started


@pytest.mark.parametrize(
    ("code", "last_words", "sentence"),
    [
        (0, b"", "exited with code 0"),
        (3, b"one\ntwo \n\n", "exited with code 3: two"),
        (1, b"caf\xe9", "exited with code 1: caf\N{REPLACEMENT CHARACTER}"),
        (1, b"x" * 5000, "exited with code 1: " + "x" * 200),
        (-9, b"", "was ended by SIGKILL"),
        (-63, b"", "was ended by signal 63"),
    ],
)
def test_an_end_is_told_with_the_last_words(code, last_words, sentence):
    assert how_it_ended(code, last_words) == sentence


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (FileNotFoundError(errno.ENOENT, "?", "/x"), "could not be started: /x: no such file or directory"),
        (OSError(errno.EMFILE, "?"), "could not be started: prog: too many open files"),
        (
            ValueError("embedded null byte"),
            "could not be started: there is a NUL in its arguments or in the environment",
        ),
    ],
)
def test_a_failed_start_is_told(error, sentence):
    assert why_not_started(error, ["prog"]) == sentence
