"""`zotctl worktree merge`, `rebase` and `patch`: all of it, or nothing."""

import pytest

from tests.zotctl.worktree.conftest import add, commit, git, hook


def state(folder):
    """What must not change when a command is refused."""
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    marks = (
        sorted(path.name for path in (folder / ".git").iterdir() if path.name.isupper())
        if (folder / ".git").is_dir()
        else []
    )
    return (
        files,
        git(folder, "rev-parse", "HEAD"),
        git(folder, "status", "--porcelain"),
        [mark for mark in marks if mark not in {"ORIG_HEAD", "AUTO_MERGE"}],
    )


def refused(here, *args):
    """Run a command that fails with one sentence, and return that."""
    code, out, err = here.zotctl("worktree", *args)
    assert (code, out, err.count("\n")) == (1, "", 1)
    return err


# --- merge ------------------------------------------------------------------------------------------------------


def test_a_merge_is_a_fast_forward_if_it_can_be_one(here):
    path = add(here)
    commit(path, "b", "two\n")
    assert here.zotctl("worktree", "merge", "w") == (0, "merged 1 commit of w into main\n", "")
    assert git(here.cwd, "rev-parse", "main") == git(path, "rev-parse", "HEAD")
    assert here.zotctl("worktree", "merge", "w") == (0, "main has all commits of w\n", "")


def test_a_merge_is_a_commit_if_both_have_moved(here):
    path = add(here)
    commit(path, "b", "two\n")
    commit(here.cwd, "c", "three\n")
    assert here.zotctl("worktree", "merge", "w")[0] == 0
    assert git(here.cwd, "rev-list", "--count", "--merges", "HEAD") == "1\n"
    assert (here.cwd / "b").read_text() == "two\n"


def test_a_merge_with_a_conflict_changes_nothing_and_names_the_files(here):
    path = add(here)
    commit(path, "a", "two\n")
    commit(here.cwd, "a", "three\n")
    before = state(here.cwd)
    sentence = refused(here, "merge", "w")
    assert "both have changed a; nothing was changed" in sentence
    assert f"cd {path} && git merge main" in sentence
    assert state(here.cwd) == before


@pytest.mark.parametrize("place", ["main", "worktree"])
def test_a_merge_is_refused_if_there_are_uncommitted_changes(here, place):
    path = add(here)
    commit(path, "b", "two\n")
    ({"main": here.cwd, "worktree": path}[place] / "a").write_text("changed\n")
    before = state(here.cwd)
    assert "has uncommitted changes" in refused(here, "merge", "w")
    assert state(here.cwd) == before


def test_a_merge_that_would_overwrite_an_untracked_file_names_it(here):
    path = add(here)
    commit(path, "b", "two\n")
    (here.cwd / "b").write_text("mine\n")
    assert "would be overwritten by merge: b" in refused(here, "merge", "w")
    assert (here.cwd / "b").read_text() == "mine\n"


def test_a_hook_that_refuses_a_merge_leaves_nothing_half_done(here):
    path = add(here)
    commit(path, "b", "two\n")
    commit(here.cwd, "c", "three\n")
    hook(here.cwd, "pre-merge-commit", "echo tests fail >&2; exit 1")
    before = state(here.cwd)
    assert "a hook refused it: tests fail" in refused(here, "merge", "w")
    assert state(here.cwd) == before


def test_without_a_branch_there_is_nothing_to_merge_into(here):
    path = add(here)
    commit(path, "b", "two\n")
    git(here.cwd, "checkout", "-q", "--detach")
    assert "is on no branch; switch to the one to merge into" in refused(here, "merge", "w")


def test_a_merge_that_the_user_has_begun_is_not_touched(here):
    path = add(here)
    commit(path, "b", "two\n")
    git(here.cwd, "switch", "-qc", "other")
    commit(here.cwd, "c", "three\n")
    git(here.cwd, "switch", "-q", "main")
    commit(here.cwd, "d", "four\n")
    git(here.cwd, "merge", "-q", "--no-commit", "other")
    before = state(here.cwd)
    assert "uncommitted changes" in refused(here, "merge", "w")
    assert state(here.cwd) == before


# --- rebase -----------------------------------------------------------------------------------------------------


def test_a_rebase_moves_commits_and_base(here):
    path = add(here)
    commit(path, "b", "two\n")
    commit(here.cwd, "c", "three\n")
    code, out, _ = here.zotctl("worktree", "rebase", "w")
    assert (code, out.startswith("rebased 1 commit of w onto main")) == (0, True)
    assert git(path, "rev-parse", "HEAD^") == git(here.cwd, "rev-parse", "HEAD")
    assert "+three" not in here.zotctl("worktree", "diff", "w")[1]


def test_a_rebase_with_a_conflict_changes_nothing(here):
    path = add(here)
    commit(path, "a", "two\n")
    commit(here.cwd, "a", "three\n")
    before, difference = state(path), here.zotctl("worktree", "diff", "w")[1]
    assert "both have changed a; nothing was changed" in refused(here, "rebase", "w")
    assert state(path) == before
    assert git(path, "branch", "--show-current") == "zot/w\n"
    assert here.zotctl("worktree", "diff", "w")[1] == difference


def test_a_rebase_needs_a_clean_worktree(here):
    path = add(here)
    (path / "c").write_text("untracked\n")
    assert "w has uncommitted changes; commit them first" in refused(here, "rebase", "w")


def test_a_hook_can_refuse_a_rebase(here):
    path = add(here)
    commit(path, "b", "two\n")
    commit(here.cwd, "c", "three\n")
    hook(here.cwd, "pre-rebase", "exit 1")
    assert "The pre-rebase hook refused" in refused(here, "rebase", "w")


def test_a_worktree_in_the_middle_of_a_rebase_is_listed_and_left_alone(here):
    path = add(here)
    commit(path, "a", "two\n")
    commit(here.cwd, "a", "three\n")
    with pytest.raises(Exception, match="rebase"):
        git(path, "rebase", "main")
    for action in ("merge", "rebase"):
        assert "w is on no branch; finish its rebase" in refused(here, action, "w")
    assert here.zotctl("worktree", "list")[0] == 0


# --- patch ------------------------------------------------------------------------------------------------------


def test_a_patch_brings_all_changes_and_commits_none(here):
    path = add(here)
    commit(path, "sub/b", "committed\n")
    (path / "a").write_text("uncommitted\n")
    (path / "c ü").write_bytes(b"\0untracked")
    assert here.zotctl("worktree", "patch", "w")[:2] == (
        0,
        "applied the changes of w to 3 files, uncommitted\n",
    )
    assert (here.cwd / "a").read_text() == "uncommitted\n"
    assert (here.cwd / "sub" / "b").read_text() == "committed\n"
    assert (here.cwd / "c ü").read_bytes() == b"\0untracked"
    assert git(here.cwd, "diff", "--cached", "--name-only") == ""
    assert here.zotctl("worktree", "patch", "w")[1] == "the main worktree has all changes of w\n"


def test_a_patch_is_merged_with_the_users_own_changes(here):
    lines = [f"{number}\n" for number in range(20)]
    commit(here.cwd, "a", "".join(lines))
    path = add(here)
    (path / "a").write_text("".join(["first\n", *lines[1:]]))
    commit(here.cwd, "z", "later\n")
    (here.cwd / "a").write_text("".join([*lines[:-1], "last\n"]))
    git(here.cwd, "add", "a")
    (here.cwd / "untracked").write_text("mine\n")
    assert here.zotctl("worktree", "patch", "w")[0] == 0
    assert (here.cwd / "a").read_text() == "".join(["first\n", *lines[1:-1], "last\n"])
    assert git(here.cwd, "show", ":a") == "".join([*lines[:-1], "last\n"])


def test_a_patch_with_a_conflict_changes_no_file(here):
    path = add(here)
    (path / "a").write_text("two\n")
    (path / "b").write_text("new\n")
    (here.cwd / "a").write_text("three\n")
    (here.cwd / "b").write_text("mine\n")
    before = state(here.cwd)
    assert "both have changed a, b; nothing was changed" in refused(here, "patch", "w")
    assert state(here.cwd) == before


def test_a_patch_deletes_renames_and_changes_modes(here):
    commit(here.cwd, "gone", "old\n")
    commit(here.cwd, "from", "kept\n")
    path = add(here)
    (path / "gone").unlink()
    (path / "from").rename(path / "to")
    (path / "a").chmod(0o755)
    (path / "link").symlink_to("a")
    assert here.zotctl("worktree", "patch", "w")[0] == 0
    assert sorted(one.name for one in here.cwd.iterdir()) == [".git", "a", "link", "to"]
    assert (here.cwd / "a").stat().st_mode & 0o111


def test_a_worktree_without_changes_has_no_patch(here):
    add(here)
    assert here.zotctl("worktree", "patch", "w") == (0, "w has no changes\n", "")
