"""Which rules of the surroundings decide what is ignored in a workspace, as one `info/exclude` of its shadow repository.

git itself reads the `.gitignore` files in the workspace. It sees neither the user's repository nor what lies above the
workspace, so these rules are translated:

    .git/info/exclude of the repository  ->  .gitignore of each directory above the workspace  ->  places of zot
"""

import os

FILE_BYTES = 256 * 1024
"""Longest part of an ignore file that is read."""

EVERYTHING = frozenset({"*", "**"})
"""Patterns with which a home directory under git ignores what it does not track."""


def exclusions(workspace: str, home: str) -> str:
    """Return the content of `info/exclude`. `home`: `$ZOT_HOME`, which is left out if it is in the workspace. Blocks."""
    lines: list[str] = []
    top = _repository_above(workspace)
    if top is not None:
        below = os.path.relpath(workspace, top)
        names = [] if below == os.curdir else below.split(os.sep)
        lines += _translated(_lines(os.path.join(top, ".git", "info", "exclude")), names)
        for depth in range(len(names)):
            folder = os.path.join(top, *names[:depth])
            lines += _translated(_lines(os.path.join(folder, ".gitignore")), names[depth:])
    inner = os.path.relpath(os.path.realpath(home), workspace)
    if not inner.startswith(os.pardir):
        lines.append(f"/{_escaped(inner)}/")
    return "".join(f"{line}\n" for line in lines)


def _repository_above(workspace: str) -> str | None:
    """Return the closest directory with a `.git`, from the workspace upwards."""
    folder = workspace
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return folder


def _lines(path: str) -> list[str]:
    try:
        if not os.path.isfile(path):  # opening a FIFO would wait for a writer
            return []
        with open(path, "rb") as file:
            return os.fsdecode(file.read(FILE_BYTES)).split("\n")
    except OSError:
        return []


def _translated(lines: list[str], names: list[str]) -> list[str]:
    """Return the patterns of a file that lies `names` above the workspace, as patterns relative to the workspace.

    Left out are those that are about other directories, or that would ignore the workspace as a whole: a person chose
    to work in it.
    """
    found = []
    for line in lines:
        text = line.rstrip("\r").removeprefix("!")
        sign = "!" if line.startswith("!") else ""
        if not text.strip() or text.startswith("#"):
            continue
        body = text.rstrip(" ").removesuffix("/")
        if body in EVERYTHING:
            continue
        if "/" not in body or body.startswith("**/"):
            found.append(sign + text)
            continue
        anchored = text.removeprefix("/")
        prefix = "".join(f"{name}/" for name in names)
        if anchored.startswith(prefix) and len(anchored) > len(prefix):
            found.append(f"{sign}/{anchored.removeprefix(prefix)}")
    return found


def _escaped(path: str) -> str:
    return "".join(f"\\{character}" if character in "*?[\\" else character for character in path)
