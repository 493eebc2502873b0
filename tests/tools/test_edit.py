import random
import stat
import subprocess
import tracemalloc

import pytest


def edits(*pairs: tuple[str, str], path: str = "a.txt") -> dict[str, object]:
    return {"path": path, "edits": [{"oldText": old, "newText": new} for old, new in pairs]}


@pytest.fixture
def edit(call, cwd):
    """Edits a file of that content; gives its content after that, the result's text, and whether it is an error."""

    async def run(content: bytes, *pairs: tuple[str, str]) -> tuple[bytes, str, bool]:
        (cwd / "a.txt").write_bytes(content)
        text, is_error = await call("edit", edits(*pairs))
        return (cwd / "a.txt").read_bytes(), text, is_error

    return run


async def test_edits_are_applied_and_shown_as_a_diff(edit):
    content = b"".join(b"line %d\n" % i for i in range(1, 31))
    after, text, is_error = await edit(content, ("line 20\n", "LINE 20\nmore\n"), ("line 5", "LINE 5"))
    assert not is_error
    assert after == content.replace(b"line 20\n", b"LINE 20\nmore\n").replace(b"line 5\n", b"LINE 5\n")
    assert text == (
        "Edited a.txt: 2 replacements\n\n--- a.txt\n+++ a.txt\n"
        "@@ -2,7 +2,7 @@\n line 2\n line 3\n line 4\n-line 5\n+LINE 5\n line 6\n line 7\n line 8\n"
        "@@ -17,7 +17,8 @@\n line 17\n line 18\n line 19\n-line 20\n+LINE 20\n+more\n line 21\n line 22\n line 23"
    )


async def test_all_edits_see_the_file_as_it_was(edit):
    after, _, _ = await edit(b"one two\n", ("one", "two"), ("two", "one"))
    assert after == b"two one\n"


@pytest.mark.parametrize(
    ("content", "pairs", "sentence"),
    [
        (b"one\n", [("two", "x")], "edit 1: oldText not found in a.txt"),
        (b"one one\n", [("one", "x")], "edit 1: oldText matches 2 times in a.txt; make it unique"),
        (b"aaa\n", [("aa", "x")], "edit 1: oldText matches 2 times in a.txt; make it unique"),
        (b"one two\n", [("one", "x"), ("", "x")], "edit 2: oldText is empty"),
        (b"one two\n", [("one two", "x"), ("two", "y")], "edits 1 and 2 overlap in a.txt"),
        (b"one\n", [("one", "one")], "edit 1: newText is the same as oldText"),
    ],
)
async def test_an_edit_that_is_not_clear_changes_nothing(edit, content, pairs, sentence):
    after, text, is_error = await edit(content, *pairs)
    assert is_error
    assert text.startswith(sentence)
    assert after == content


async def test_edits_may_touch(edit):
    after, _, is_error = await edit(b"onetwo\n", ("one", "1"), ("two", "2"))
    assert (after, is_error) == (b"12\n", False)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
async def test_line_ends_of_the_file_are_matched_and_kept(edit, ending):
    content = b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n"
    after, text, is_error = await edit(content, (f"one{ending}two", f"1{ending}1a{ending}2"))
    assert not is_error
    assert after == b"\xef\xbb\xbf1\r\n1a\r\n2\r\nthree\r\n"
    assert "\r" not in text


async def test_every_line_of_a_mixed_file_keeps_its_own_end(edit):
    after, _, _ = await edit(b"a\r\nb\nc\r\nd\n", ("c\n", "C\nmore\n"), ("b\n", "B\nmore\n"))
    assert after == b"a\r\nB\nmore\nC\r\nmore\r\nd\n"


async def test_a_match_may_begin_and_end_with_a_line_end(edit):
    after, _, _ = await edit(b"a\r\nb\r\nc\r\n", ("\nb\n", "\n"))
    assert after == b"a\r\nc\r\n"


async def test_bytes_that_are_no_utf8_stay(edit):
    after, _, is_error = await edit(b"\xff one \xe9\n", ("one", "two"))
    assert (after, is_error) == (b"\xff two \xe9\n", False)


async def test_a_missing_newline_at_the_end_is_shown(edit):
    _, text, _ = await edit(b"one\ntwo", ("two", "2\n"))
    assert text.endswith("@@ -1,2 +1,2 @@\n one\n-two\n\\ No newline at end of file\n+2")


async def test_a_file_that_becomes_empty_has_no_lines_in_the_diff(edit):
    after, text, _ = await edit(b"one\n", ("one\n", ""))
    assert after == b""
    assert text.endswith("@@ -1,1 +0,0 @@\n-one")


async def test_mode_and_symbolic_link_stay(call, cwd):
    (cwd / "real.sh").write_text("one")
    (cwd / "real.sh").chmod(0o750)
    (cwd / "a.txt").symlink_to("real.sh")
    await call("edit", edits(("one", "two")))
    assert (cwd / "a.txt").is_symlink()
    assert (cwd / "real.sh").read_text() == "two"
    assert stat.S_IMODE((cwd / "real.sh").stat().st_mode) == 0o750


async def test_a_diff_is_as_long_as_a_result_may_be(edit):
    _, text, is_error = await edit(b"one\n", ("one", "\n".join("x" * 60 for _ in range(10_000))))
    assert not is_error
    assert len(text) < 52 * 1024
    assert text.endswith("[the rest of the diff is too long to be shown]")


async def test_a_missing_file_is_named(call, cwd):
    assert await call("edit", edits(("one", "two"))) == (f"cannot edit {cwd}/a.txt: no such file or directory", True)


async def test_a_file_that_is_too_large_is_refused(call, cwd):
    with (cwd / "a.txt").open("wb") as file:
        file.truncate(64 * 1024 * 1024 + 1)
    text, is_error = await call("edit", edits(("one", "two")))
    assert is_error
    assert text.startswith("a.txt has more than 67,108,864 bytes")


@pytest.mark.parametrize("edits", [[], [{"oldText": "x"}], "x"])
async def test_bad_arguments_are_an_outcome(call, edits):
    text, is_error = await call("edit", {"path": "a.txt", "edits": edits})
    assert is_error
    assert text.startswith("bad arguments of edit: ")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
async def test_memory_is_linear_in_a_file_of_a_hundred_thousand_lines(call, cwd, newline):
    content = newline.join(f"line {i} {'x' * 40}" for i in range(100_000)).encode()
    (cwd / "a.txt").write_bytes(content)
    tracemalloc.start()
    _, is_error = await call("edit", edits(("line 7 ", "LINE 7 "), ("line 99990 ", "LINE 99990 ")))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not is_error
    assert peak < 4 * len(content)


@pytest.mark.parametrize("seed", range(30))
async def test_the_diff_makes_the_new_file_of_the_old_one(call, cwd, seed):
    dice = random.Random(seed)
    lines = [f"{i}{'x' * dice.randrange(3)}" for i in range(dice.randrange(1, 40))]
    content = "\n".join(lines) + dice.choice(["", "\n"])
    (cwd / "a.txt").write_text(content)
    (cwd / "old").mkdir()
    (cwd / "old" / "a.txt").write_text(content)
    position = 0
    pairs: list[tuple[str, str]] = []
    while len(pairs) < 4:
        start = dice.randrange(position, len(content) + 1)
        end = min(len(content), start + dice.randrange(1, 12))
        if start >= len(content):
            break
        old = content[start:end]
        if content.find(old) == content.rfind(old):
            pairs.append((old, dice.choice(["", "new", "new\n", "\nnew\nnew", old + "!"])))
            position = end
    text, is_error = await call("edit", edits(*(pairs or [(content, "all")])))
    assert not is_error
    (cwd / "diff").write_text(text.split("\n\n", 1)[1] + "\n")
    apply_patch(cwd / "old")
    assert (cwd / "old" / "a.txt").read_text() == (cwd / "a.txt").read_text()


def apply_patch(folder) -> None:
    subprocess.run(["git", "apply", "-p0", "--unidiff-zero", "../diff"], cwd=folder, check=True)
