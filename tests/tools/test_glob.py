import asyncio
import os
import threading

import pytest

from zotd.tools.shared import DirectoryWalk, glob_matcher


def make(cwd, *paths: str, ignore: dict[str, str] | None = None) -> None:
    for path in paths:
        (cwd / path).parent.mkdir(parents=True, exist_ok=True)
        (cwd / path).touch()
    for folder, text in (ignore or {}).items():
        (cwd / folder).mkdir(parents=True, exist_ok=True)
        (cwd / folder / ".gitignore").write_text(text)


async def test_matches_are_sorted_by_path_and_relative_to_the_working_directory(call, cwd):
    make(cwd, "b.py", "a/c.py", "a/b/d.py", "a.py", "a/note.txt")
    assert await call("glob", {"pattern": "**/*.py"}) == ("a/b/d.py\na/c.py\na.py\nb.py", False)
    assert await call("glob", {"pattern": "**/*.py", "path": "a"}) == ("a/b/d.py\na/c.py", False)


async def test_a_path_outside_the_working_directory_is_shown_whole(call, cwd, tmp_path):
    make(tmp_path, "other/a.py")
    expected = (str(tmp_path / "other/a.py"), False)
    assert await call("glob", {"pattern": "*.py", "path": "../other"}, cwd=str(cwd)) != ("no files match", False)
    assert await call("glob", {"pattern": f"{tmp_path}/other/*.py"}) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.py", ["a.py"]),
        ("src/*.py", ["src/b.py"]),
        ("src/**/*.py", ["src/b.py", "src/x/y/c.py"]),
        ("**/c.py", ["src/x/y/c.py"]),
        ("**/y/**", ["src/x/y/c.py", "src/x/y/d.[1].ts"]),
        ("**/*.{py,ts}", ["a.py", "src/b.py", "src/x/y/c.py", "src/x/y/d.[1].ts"]),
        ("{src/x,lib}/**/*.{[pt]s,{ts,tsx}}", ["src/x/y/d.[1].ts"]),
        ("**/[!a].py", ["src/b.py", "src/x/y/c.py"]),
        ("**/?.py", ["a.py", "src/b.py", "src/x/y/c.py"]),
        ("**/d.[[]1].ts", ["src/x/y/d.[1].ts"]),
        ("./src/b.py", ["src/b.py"]),
        ("src", []),
        ("nothing/*.py", None),
    ],
)
async def test_patterns(call, cwd, pattern, expected):
    make(cwd, "a.py", "src/b.py", "src/x/y/c.py", "src/x/y/d.[1].ts")
    text, is_error = await call("glob", {"pattern": pattern})
    if expected is None:
        assert is_error
        assert text.endswith("nothing is not a directory; give the path of one")
    else:
        assert text == ("\n".join(expected) or "no files match")


async def test_what_gitignore_names_is_left_out_at_every_level(call, cwd):
    make(
        cwd,
        *("keep.py", "build/x.py", "a/build/x.py", "a/skip.py", "a/b/skip.py", "a/b/back.log", "c.log", "d/only.py"),
        ignore={"": "build/\n*.log\n", "a": "/skip.py\n!back.log\n", "d": "*\n!*.txt\n[z-a]\n!\n"},
    )
    text, _ = await call("glob", {"pattern": "**/*"})
    assert text.split() == ["a/b/back.log", "a/b/skip.py", "keep.py"]


async def test_a_list_of_what_to_keep_works(call, cwd):
    make(cwd, "src/a.py", "src/a.txt", "b.py", "b.txt", ignore={"": "*\n!*/\n!*.py\n"})
    text, _ = await call("glob", {"pattern": "**/*"})
    assert text.split() == ["b.py", "src/a.py"]


async def test_rules_of_the_repository_above_count(call, cwd):
    make(cwd, ".git/HEAD", "sub/deep/a.py", "sub/deep/a.log", "sub/b.py", ignore={"": "*.log\n/sub/b.py\n"})
    text, _ = await call("glob", {"pattern": "**/*", "path": "sub"})
    assert text.split() == ["sub/deep/a.py"]


async def test_without_a_repository_parent_directories_do_not_count(call, cwd, tmp_path):
    make(cwd, "a.py")
    (tmp_path / ".gitignore").write_text("*\n")
    assert (await call("glob", {"pattern": "*"}))[0] == "a.py"


async def test_an_ignored_directory_that_is_named_is_searched(call, cwd):
    make(cwd, ".git/HEAD", "node_modules/x/index.js", ignore={"": "node_modules/\n"})
    assert (await call("glob", {"pattern": "**/*.js"}))[0] == "no files match"
    assert (await call("glob", {"pattern": "**/*.js", "path": "node_modules"}))[0] == "node_modules/x/index.js"


async def test_hidden_files_are_found_when_asked_for_but_never_those_of_git(call, cwd):
    make(cwd, ".git/HEAD", ".env", ".github/ci.yml", "a.py")
    assert (await call("glob", {"pattern": "**/*"}))[0] == "a.py"
    assert (await call("glob", {"pattern": "**/*", "hidden": True}))[0].split() == [".env", ".github/ci.yml", "a.py"]
    assert (await call("glob", {"pattern": "**/.env"}))[0] == ".env"
    assert (await call("glob", {"pattern": ".github/*.yml"}))[0] == ".github/ci.yml"


async def test_a_result_is_cut_and_says_so(call, cwd):
    make(cwd, *(f"{i:04}.txt" for i in range(600)))
    lines = (await call("glob", {"pattern": "*.txt"}))[0].splitlines()
    assert lines[:500] == [f"{i:04}.txt" for i in range(500)]
    assert lines[500:] == ["[only the first 500 matches; use a narrower pattern or path]"]


async def test_links_are_listed_and_not_followed(call, cwd):
    make(cwd, "folder/a.py")
    (cwd / "folder/loop").symlink_to("..")
    (cwd / "link.py").symlink_to("folder/a.py")
    assert (await call("glob", {"pattern": "**/*"}))[0].split() == ["folder/a.py", "folder/loop", "link.py"]


async def test_a_gitignore_that_is_a_fifo_blocks_no_listing(call, cwd):
    make(cwd, "a.py")
    os.mkfifo(cwd / ".gitignore")
    assert (await call("glob", {"pattern": "*"}))[0] == "a.py"


async def test_a_file_name_that_is_no_utf8_can_be_shown(call, cwd):
    (cwd / os.fsdecode(b"caf\xe9.txt")).touch()
    assert (await call("glob", {"pattern": "*.txt"}))[0] == "caf?.txt"


async def test_a_very_deep_tree_is_walked(call, cwd):
    folder = cwd
    for _ in range(300):
        folder /= "d"
    folder.mkdir(parents=True)
    (folder / "a.py").touch()
    assert (await call("glob", {"pattern": "**/a.py"}))[0] == "d/" * 300 + "a.py"


async def test_an_aborted_walk_ends(call, cwd):
    make(cwd, *(f"{i % 50}/{i}.txt" for i in range(500)))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(call("glob", {"pattern": "**/*.txt"}))
        await asyncio.sleep(0)  # the walk has begun
        task.cancel()
    assert task.cancelled()


def test_an_abandoned_walk_ends_early(cwd):
    make(cwd, *(f"{i}/a.txt" for i in range(50)))
    abandoned = threading.Event()
    walk = iter(DirectoryWalk(cwd, hidden=False, abandoned=abandoned))
    assert next(walk) == "0/a.txt"
    abandoned.set()
    assert list(walk) == []


def test_a_walk_that_is_too_long_is_cut_and_says_so(cwd):
    make(cwd, *(f"{i}/a.txt" for i in range(10)))
    tree = DirectoryWalk(cwd, hidden=False, abandoned=threading.Event(), max_entries=15)
    assert list(tree) == [f"{i}/a.txt" for i in range(5)]
    assert tree.cut


def test_a_hostile_pattern_takes_no_time():
    assert not glob_matcher("*a" * 30 + "b")("a" * 200)
    assert not glob_matcher("**/a/" * 30 + "b")("a/" * 200)


@pytest.mark.parametrize("args", [{"pattern": "{a,b}" * 20}, {"pattern": "x", "glob": "{a,b}" * 20}])
async def test_too_many_braces_are_refused(call, args):
    text, is_error = await call("grep" if "glob" in args else "glob", args)
    assert is_error
    assert text.endswith("stand for more than 100 patterns; use fewer")
