import io
import os

import pytest

from zotd.tools.search import main


@pytest.fixture
def search(tmp_path):
    """Runs the program in this process on files of that content; gives exit code and output."""

    def run(*arguments: str, **content: bytes) -> tuple[int, bytes]:
        paths: list[bytes] = []
        for name, data in content.items():
            (tmp_path / name).write_bytes(data)
            paths.append(os.fsencode(tmp_path / name) + b"\0")
        out = io.BytesIO()
        code = main(list(arguments), io.BytesIO(b"".join(paths)), out)
        return code, out.getvalue().replace(os.fsencode(tmp_path) + b"/", b"")

    return run


def test_lines_are_printed_as_ripgrep_prints_them(search):
    assert search("-s", "two", a=b"one\ntwo\r\n", b=b"two") == (0, b"a\x002:two\nb\x001:two\n")


def test_case_counts_unless_told_otherwise(search):
    assert search("-s", "ONE", a=b"one\n") == (0, b"")
    assert search("-i", "ONE", a=b"one\n") == (0, b"a\x001:one\n")


def test_only_the_beginning_of_an_endless_line_is_searched_and_less_is_printed(search):
    line = b"needle" + b"x" * 200_000
    assert search("-s", "needle", a=line + b"\nneedle\n") == (0, b"a\x001:" + line[:2_000] + b"\na\x002:needle\n")
    assert search("-s", "needle", a=b"x" * 200_000 + b"needle") == (0, b"")


def test_binary_files_are_skipped_and_bytes_that_are_no_utf8_are_not(search):
    assert search("-s", "one", a=b"one\0", b=b"\xff one") == (0, b"b\x001:\xff one\n")


def test_a_bad_pattern_has_exit_code_2(search):
    assert search("-s", "(") == (2, b"regex parse error: missing ), unterminated subpattern at position 0\n")


def test_missing_and_irregular_files_are_skipped(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("fifo")
    paths = b"\0".join(os.fsencode(tmp_path / name) for name in ("fifo", "link", "gone", "."))
    out = io.BytesIO()
    assert (main(["-s", "x"], io.BytesIO(paths), out), out.getvalue()) == (0, b"")
