import asyncio
import os
from pathlib import Path

import pytest

FAKE_RIPGREP = r"""#!/bin/sh
[ "$1" = --no-config ] || exit 9
case "$*" in
*--regexp=bad*) echo 'rg: regex parse error:'; echo '    bad('; exit 2 ;;
*--regexp=unreadable*) exit 2 ;;
*--no-ignore-parent*--regexp=parents*) printf './a\0001:yes\n' ;;
*--regexp=parents*) printf './a\0001:no\n' ;;
*--regexp=flood*) while :; do printf './a.py\0001:x\n'; done ;;
*) printf './sub/a.py\0007:found by ripgrep\r\n./b.txt\0001:and here\n' ;;
esac
"""


@pytest.fixture
def files(cwd):
    def make(**content: str) -> None:
        for name, text in content.items():
            path = cwd / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return make


@pytest.fixture
def ripgrep(tmp_path):
    """The environment with a program `rg` that prints what ripgrep prints; which files it finds is its own matter."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "rg").write_text(FAKE_RIPGREP)
    (folder / "rg").chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


@pytest.fixture
def call(call, tmp_path):
    """Without ripgrep, unless a test brings its own."""
    empty = tmp_path / "no-programs"
    empty.mkdir()

    async def run(name, args, **changes):
        return await call(name, args, **{"env": {"PATH": str(empty)}, **changes})

    return run


async def test_matching_lines_are_given_with_path_and_number(call, files):
    files(a_py="import os\nx = 1\nimport re\r\n", sub__b_py="  import sys\n")
    expected = "a.py:1:import os\na.py:3:import re\nsub/b.py:1:  import sys"
    assert await call("grep", {"pattern": r"import \w+"}) == (expected, False)


async def test_path_glob_and_case_narrow_the_search(call, files):
    files(a_py="Needle\n", sub__b_py="needle\n", sub__c_txt="needle\n")
    assert (await call("grep", {"pattern": "needle"}))[0] == "sub/b.py:1:needle\nsub/c.txt:1:needle"
    assert (await call("grep", {"pattern": "needle", "ignoreCase": True}))[0].startswith("a.py:1:Needle\n")
    assert (await call("grep", {"pattern": "needle", "glob": "*.py"}))[0] == "sub/b.py:1:needle"
    assert (await call("grep", {"pattern": "needle", "glob": "sub/*.{py,md}"}))[0] == "sub/b.py:1:needle"
    assert (await call("grep", {"pattern": "needle", "path": "sub/c.txt"}))[0] == "sub/c.txt:1:needle"
    assert (await call("grep", {"pattern": "eedle", "path": "sub", "glob": "c*"}))[0] == "sub/c.txt:1:needle"


async def test_nothing_found_is_no_error(call, files):
    files(a_py="one\n")
    assert await call("grep", {"pattern": "two"}) == ("no matches", False)


async def test_ignored_hidden_binary_and_special_files_are_left_out(call, cwd, files):
    files(a_py="needle\n", b_log="needle\n")
    (cwd / ".gitignore").write_text("*.log\n")
    (cwd / ".hidden").write_text("needle\n")
    (cwd / "data").write_bytes(b"needle\0\n")
    (cwd / "link").symlink_to("a.py")
    os.mkfifo(cwd / "fifo")
    assert await call("grep", {"pattern": "needle"}) == ("a.py:1:needle", False)


async def test_a_file_that_is_named_is_searched_whatever_it_is_called(call, cwd):
    (cwd / ".gitignore").write_text("-i\n")
    (cwd / "-i").write_text("needle\n")
    (cwd / "link").symlink_to("-i")
    assert (await call("grep", {"pattern": "-s|needle", "path": "-i"}))[0] == "-i:1:needle"
    assert (await call("grep", {"pattern": "needle", "path": "link"}))[0] == "-i:1:needle"


@pytest.mark.parametrize("pattern", ["(", "[z-a]", "a{99999999999}", "(?P<n>", "*"])
async def test_a_bad_pattern_is_a_clear_error(call, files, pattern):
    files(a_py="one\n")
    text, is_error = await call("grep", {"pattern": pattern})
    assert is_error
    assert text.startswith("the search failed (2): regex parse error: ")
    assert "\n" not in text


@pytest.mark.parametrize(
    ("path", "reason"), [("missing", "no such file"), ("fifo", "not a regular file"), ("loop", "symbolic link")]
)
async def test_a_path_that_cannot_be_searched_is_an_error(call, cwd, path, reason):
    os.mkfifo(cwd / "fifo")
    (cwd / "loop").symlink_to("loop")
    text, is_error = await call("grep", {"pattern": "x", "path": path})
    assert is_error
    assert reason in text


async def test_a_nul_in_the_pattern_is_refused(call):
    text, is_error = await call("grep", {"pattern": "a\0b"})
    assert is_error
    assert "NUL" in text


async def test_a_result_is_cut_and_says_so(call, files):
    files(a_txt="needle\n" * 1_000)
    lines = (await call("grep", {"pattern": "needle"}))[0].splitlines()
    assert lines[199] == "a.txt:200:needle"
    assert lines[200:] == ["[only the first 200 matches; use a narrower pattern, path or glob]"]


async def test_a_long_line_is_cut(call, files):
    files(a_txt="x" * 1_000_000 + "\nneedle " + "y" * 100_000 + "\nneedle\n")
    first, second = (await call("grep", {"pattern": "needle"}))[0].splitlines()
    assert first == "a.txt:2:needle " + "y" * 393 + "…"
    assert second == "a.txt:3:needle"


async def test_long_lines_do_not_make_a_result_too_long(call, files):
    files(**{f"{i}_txt": ("needle" + "é" * 400 + "\n") * 100 for i in range(3)})
    text, _ = await call("grep", {"pattern": "needle"})
    assert len(text.encode()) < 52 * 1024
    assert text.endswith("matches; use a narrower pattern, path or glob]")


async def test_a_pattern_that_runs_away_can_be_aborted(call, files):
    """Python's `re` would hold up the whole program for years."""
    files(a_txt="a" * 60 + "!\n")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(call("grep", {"pattern": "(a+)+$"}))
        async with asyncio.timeout(60):
            while not has_child():  # noqa: ASYNC110  (nothing tells that the search has started)
                await asyncio.sleep(0)
        task.cancel()
    assert task.cancelled()


def has_child() -> bool:
    return bool(Path(f"/proc/self/task/{os.getpid()}/children").read_text())


async def test_ripgrep_is_used_where_it_is_on_the_path(call, cwd, ripgrep):
    text, is_error = await call("grep", {"pattern": "x"}, env=ripgrep)
    assert (text, is_error) == ("sub/a.py:7:found by ripgrep\nb.txt:1:and here", False)
    assert (await call("grep", {"pattern": "x", "glob": "*.txt"}, env=ripgrep))[0] == "b.txt:1:and here"
    (cwd / "sub").mkdir()
    assert (await call("grep", {"pattern": "x", "path": "sub"}, env=ripgrep))[0].startswith("sub/sub/a.py:7:")


async def test_ripgrep_looks_above_the_directory_only_in_a_repository(call, cwd, ripgrep):
    assert "yes" in (await call("grep", {"pattern": "parents"}, env=ripgrep))[0]
    (cwd / ".git").mkdir()
    assert "no" in (await call("grep", {"pattern": "parents"}, env=ripgrep))[0]


async def test_ripgrep_is_stopped_when_there_is_enough(call, ripgrep):
    lines = (await call("grep", {"pattern": "flood"}, env=ripgrep))[0].splitlines()
    assert (len(lines), lines[0]) == (201, "a.py:1:x")


async def test_what_ripgrep_says_of_a_bad_pattern_is_passed_on(call, ripgrep):
    text, is_error = await call("grep", {"pattern": "bad("}, env=ripgrep)
    assert (text, is_error) == ("the search failed (2): rg: regex parse error: bad(", True)
    assert await call("grep", {"pattern": "unreadable"}, env=ripgrep) == ("no matches", False)
