"""A repository with one commit, and commands in it."""

import subprocess
from pathlib import Path

import pytest

from tests.needs import needs


def git(cwd, *args):
    return subprocess.run(["git", *args], cwd=cwd, check=True, capture_output=True, text=True).stdout


def make_repository(folder):
    needs("git")
    git(folder, "init", "-q", "-b", "main")
    set_author(folder)
    commit(folder, "a", "one\n")


def set_author(folder):
    """Name an author in the repository: where the tests run, there may be none for all repositories."""
    git(folder, "config", "user.name", "t")
    git(folder, "config", "user.email", "t@example.org")


def commit(folder, name, content):
    """Commit a file."""
    path = Path(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    git(folder, "add", "-f", name)
    git(folder, "commit", "-qm", f"change {name}")


def add(shell, name="w"):
    """Create a worktree by command; return its directory."""
    code, out, err = shell.zotctl("worktree", "add", name)
    assert (code, err) == (0, "")
    return Path(out.strip())


def hook(folder, name, body):
    """Have git run this shell script."""
    path = Path(folder, ".git", "hooks", name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def here(shell):
    """A shell in a repository with one commit; no daemon runs."""
    shell.env |= {"XDG_DATA_HOME": str(shell.home / "data"), "HOME": str(shell.home)}
    make_repository(shell.cwd)
    return shell


@pytest.fixture
def there(live):
    """The same with a daemon."""
    live.shell.env |= {"XDG_DATA_HOME": str(live.shell.home / "data"), "HOME": str(live.shell.home)}
    make_repository(live.shell.cwd)
    return live
