"""`zotctl worktree` as a real command, with real git."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.needs import needs
from zotd.client.blocking import connect
from zotd.client.fields import child, text


def git(cwd, *args):
    return subprocess.run(["git", *args], cwd=cwd, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def here(shell):
    """A shell in a repository with one commit."""
    shell.env["XDG_DATA_HOME"] = str(shell.home / "data")
    make_repository(shell)
    return shell


def make_repository(shell):
    needs("git")
    git(shell.cwd, "init", "-q", "-b", "main")
    git(shell.cwd, "config", "user.name", "t")
    git(shell.cwd, "config", "user.email", "t@example.org")
    (shell.cwd / "a").write_text("one\n")
    git(shell.cwd, "add", "a")
    git(shell.cwd, "commit", "-qm", "first")


def add(here, name="w"):
    code, out, err = here.zotctl("worktree", "add", name)
    assert (code, err) == (0, "")
    return Path(out.strip())


def test_a_worktree_is_on_a_branch_of_its_own(here):
    path = add(here)
    assert git(path, "branch", "--show-current") == "zot/w\n"
    (listed,) = json.loads(here.zotctl("worktree", "list", "--json")[1])["worktrees"]
    assert (listed["path"], listed["ahead"], listed["is_dirty"]) == (str(path), 0, False)


def test_the_diff_has_committed_uncommitted_and_untracked_changes(here):
    path = add(here)
    (path / "b").write_text("committed\n")
    git(path, "add", "b")
    git(path, "commit", "-qm", "second")
    (path / "a").write_text("uncommitted\n")
    (path / "c").write_text("untracked\n")
    code, out, _ = here.zotctl("worktree", "diff", "w")
    assert code == 0
    assert all(f"+{word}\n" in out for word in ("committed", "uncommitted", "untracked"))
    assert git(path, "status", "--porcelain") == " M a\n?? c\n"


def test_work_is_removed_only_by_force(here):
    path = add(here)
    (path / "c").write_text("untracked\n")
    assert here.zotctl("worktree", "remove", "w")[::2] == (
        1,
        "zotctl: w has uncommitted changes; to discard them, use --force\n",
    )
    git(path, "add", "c")
    git(path, "commit", "-qm", "second")
    assert "commits that are not merged" in here.zotctl("worktree", "remove", "w")[2]
    assert here.zotctl("worktree", "remove", "w", "--force")[0] == 0
    assert not path.exists()
    assert git(here.cwd, "branch", "--list", "zot/*") == ""


def test_what_cannot_be_is_refused_in_one_sentence(here):
    add(here)
    for args, reason in (
        (("add", "w"), "the branch zot/w exists"),
        (("add", "a..b"), "git does not take"),
        (("add", "x", "--base", "absent"), "git rev-parse"),
        (("diff", "absent"), "there is no worktree absent"),
    ):
        code, _, err = here.zotctl("worktree", *args)
        assert code == 1
        assert reason in err
        assert err.count("\n") == 1


def test_outside_of_a_repository_git_says_so(shell):
    needs("git")
    code, _, err = shell.zotctl("worktree", "list")
    assert code == 1
    assert "not a git repository" in err


def test_a_patch_of_the_worktree_applies_in_the_main_one_whatever_git_is_configured_to_print(here):
    path = add(here)
    (path / "a").write_text("two\n")
    (path / "b").write_bytes(b"\0binary")
    for name, value in (("color.ui", "always"), ("diff.noprefix", "true"), ("diff.external", "false")):
        git(here.cwd, "config", name, value)
    patch = here.zotctl("worktree", "diff", "w")[1]
    subprocess.run(["git", "apply"], cwd=here.cwd, input=patch, text=True, check=True)
    assert ((here.cwd / "a").read_text(), (here.cwd / "b").read_bytes()) == ("two\n", b"\0binary")


def test_the_base_is_forgotten_with_the_branch(here):
    add(here)
    assert git(here.cwd, "config", "branch.zot/w.zotBase")
    assert here.zotctl("worktree", "remove", "w")[0] == 0
    assert "zotbase" not in git(here.cwd, "config", "--list").lower()


def test_a_worktree_whose_directory_was_deleted_is_named_and_can_be_removed(here):
    path = add(here)
    shutil.rmtree(path)
    assert f"{path} is gone" in here.zotctl("worktree", "diff", "w")[2]
    assert here.zotctl("worktree", "remove", "w", "--force")[::2] == (0, "")
    assert here.zotctl("worktree", "list", "--json")[1] == '{"v":1,"worktrees":[]}\n'


def test_a_hook_that_fails_leaves_no_half_worktree(here):
    hook = here.cwd / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    assert here.zotctl("worktree", "add", "w")[0] == 1
    hook.unlink()
    assert git(here.cwd, "branch", "--list", "zot/*") == ""
    assert add(here).is_dir()


def test_a_hook_of_another_repository_can_run_it(here, tmp_path):
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", str(other))
    here.env |= {"GIT_DIR": str(other / ".git"), "GIT_INDEX_FILE": str(other / "index")}
    code, out, err = here.zotctl("worktree", "add", "w")
    assert (code, err) == (0, "")
    assert (Path(out.strip()) / "a").read_text() == "one\n"


def test_a_worktree_begins_where_base_says(here):
    git(here.cwd, "tag", "old")
    git(here.cwd, "commit", "-q", "--allow-empty", "-m", "second")
    code, out, _ = here.zotctl("worktree", "add", "w", "--base", "old")
    assert code == 0
    assert git(Path(out.strip()), "rev-parse", "HEAD") == git(here.cwd, "rev-parse", "old")


def test_a_bare_repository_is_refused(shell):
    needs("git")
    git(shell.cwd, "init", "-q", "--bare")
    code, _, err = shell.zotctl("worktree", "list")
    assert code == 1
    assert "this repository is bare" in err


def test_the_list_names_the_sessions_that_work_in_a_worktree(live, shell):
    shell.env["XDG_DATA_HOME"] = str(shell.home / "data")
    make_repository(shell)
    path = add(shell)
    (path / "below").mkdir()
    with connect(live.socket) as connection:
        info = connection.call("session.create", cwd=str(path / "below"), provider="openai", keyless=True)
        connection.call("session.create", cwd=str(shell.cwd), provider="openai", keyless=True)
    (listed,) = json.loads(shell.zotctl("worktree", "list", "--json")[1])["worktrees"]
    assert listed["sessions"] == [text(child(info, "session"), "id")]
