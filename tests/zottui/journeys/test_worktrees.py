"""Two sessions in one repository, each in a worktree of its own: both are merged, and neither has seen the other."""

import json
import subprocess

from tests.needs import needs
from tests.zottui.journeys.world import PROMPT, rests
from zotd.testing.script import CallPart, TextPart

SHELL = r"^[$#] ?$"


def git(folder, *args):
    return subprocess.run(["git", *args], cwd=folder, check=True, capture_output=True, text=True).stdout


def repository(world):
    needs("git")
    git(world.cwd, "init", "-q", "-b", "main")
    for name, value in (("user.name", "t"), ("user.email", "t@example.org")):
        git(world.cwd, "config", name, value)
    (world.cwd / "a").write_text("one\n")
    git(world.cwd, "add", "a")
    git(world.cwd, "commit", "-qm", "first")
    world.env["XDG_DATA_HOME"] = str(world.folder / "data")


def works(world, zot, name):
    """Have the session write and commit a file."""
    command = f"echo {name} > {name} && git add {name} && git commit -qm {name}"
    world.model.says([CallPart("bash", {"command": command})], [TextPart([f"made {name}"])])
    zot.wait(PROMPT)
    zot.type("go")
    zot.key("Enter")
    zot.wait(f"made {name}")
    rests(zot)


def test_two_worktrees_are_merged(world):
    repository(world)
    shell = world.shell()
    shell.type("zot -w parser")
    shell.key("Enter")
    works(world, shell, "parser")
    printer = world.zot("-w", "printer")
    works(world, printer, "printer")
    assert not (world.cwd / "parser").exists()
    assert not (world.cwd / "printer").exists()

    printer.key("F2")
    printer.wait("work: worktree printer")
    printer.wait("work: worktree parser")
    printer.key("Escape")

    shell.type("/exit")
    shell.key("Enter")
    shell.wait(r"the worktree parser is on the branch zot/parser in ", where="history")
    shell.wait(r"to take it back: zotctl worktree merge parser$", where="history")
    shell.wait(SHELL)
    shell.type("zotctl worktree merge parser && zotctl worktree merge printer")
    shell.key("Enter")
    shell.wait("merged 1 commit of parser into main")
    shell.wait("merged 1 commit of printer into main")
    assert ((world.cwd / "parser").read_text(), (world.cwd / "printer").read_text()) == ("parser\n", "printer\n")

    kept = json.loads(world.run("zotctl", "worktree", "prune", "--json"))
    assert kept["removed"] == ["parser"]
    (reason,) = kept["kept"]
    assert reason["name"] == "printer"
    assert "it is in use by" in reason["reason"]
