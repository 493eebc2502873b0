"""Git itself says what is right."""

import random
import subprocess

import pytest

from zotd.tools.shared.ignore import FILE_BYTES

NAMES = ["a", "b", "a.py", "b.log", "build", "a b", "[x]", "!a", "#b", "éé"]  # two: to git a character is a byte
LINES = [
    *(
        "a",
        "b/",
        "/a",
        "*.py",
        "*.log ",
        "!b.log",
        "build/",
        "!build/",
        "a/b",
        "/a/*",
        "!/a/b",
        "**/b",
        "a/**",
        "!a/b/",
    ),
    *("a/**/b", "*", "!*/", "!*.py", "?.py", "[ab]", "[!a]*", "[^a]", r"\!a", r"\#b", "#b", r"\[x\]", r"a\ b", "", " "),
    *("!", "/", "éé", "a/", "!a", "*.p[xy]\r", "a/*/a", "/*", "!/build", "**", "**/a/*.py", "a\\", "build/**/"),
]


def run(folder, *command: str) -> list[str]:
    done = subprocess.run(["git", *command], cwd=folder, check=True, capture_output=True, text=True)
    return [name for name in done.stdout.split("\0") if name]


@pytest.mark.parametrize("seed", range(15))
async def test_files_are_left_out_as_git_leaves_them_out(call, cwd, seed):
    dice = random.Random(seed)
    for _ in range(60):
        folder = cwd.joinpath(*dice.choices(NAMES, k=dice.randrange(4)))
        path = folder / dice.choice(NAMES)
        if not any(parent.is_file() for parent in path.parents) and not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            path.touch()
    folders = [cwd, *sorted(path for path in cwd.rglob("*") if path.is_dir())]
    for folder in dice.sample(folders, k=min(3, len(folders))):
        (folder / ".gitignore").write_text("\n".join(dice.sample(LINES, k=5)), newline="\n")
    run(cwd, "init", "--quiet")
    expected = run(cwd, "ls-files", "--others", "--exclude-standard", "-z", "--", ":!.gitignore", ":!**/.gitignore")
    text, _ = await call("glob", {"pattern": "**/*"})
    found = [] if text == "no files match" else text.split("\n")
    assert sorted(found) == sorted(expected)


async def test_only_the_beginning_of_an_endless_file_counts(call, cwd):
    (cwd / ".gitignore").write_text("a\n" + "#" * FILE_BYTES + "\nb\n")
    for name in "ab":
        (cwd / name).touch()
    assert (await call("glob", {"pattern": "*"}))[0] == "b"
