"""`zotctl worktree prune`: only what nothing is lost with."""

import json

from tests.zotctl.worktree.conftest import add, commit, git
from zotd.client.fields import child, text


def pruned(shell, *flags):
    code, out, err = shell.zotctl("worktree", "prune", "--json", *flags)
    assert (code, err) == (0, "")
    found = json.loads(out)
    return found["removed"], {one["name"]: one["reason"] for one in found["kept"]}


def test_merged_and_clean_worktrees_are_removed_and_the_others_kept_with_the_reason(here):
    merged, dirty, ahead = add(here, "merged"), add(here, "dirty"), add(here, "ahead")
    commit(merged, "b", "two\n")
    assert here.zotctl("worktree", "merge", "merged")[0] == 0
    (dirty / "c").write_text("untracked\n")
    commit(ahead, "d", "three\n")
    expected = (
        ["merged"],
        {
            "ahead": "it has 1 commit not merged",
            "dirty": "it has uncommitted changes",
        },
    )
    assert pruned(here, "--dry-run") == expected
    assert merged.is_dir()
    assert pruned(here) == expected
    assert (merged.exists(), dirty.is_dir(), ahead.is_dir()) == (False, True, True)
    assert git(here.cwd, "branch", "--list", "zot/*").split() == ["+", "zot/ahead", "+", "zot/dirty"]


def test_the_list_for_people_says_what_was_and_what_would_be_done(here):
    add(here, "done")
    (add(here, "dirty") / "c").write_text("untracked\n")
    kept = "kept dirty: it has uncommitted changes\n"
    assert here.zotctl("worktree", "prune", "--dry-run") == (0, f"would remove done\n{kept}", "")
    assert here.zotctl("worktree", "prune") == (0, f"removed done\n{kept}", "")


def test_a_locked_worktree_is_kept(here):
    git(here.cwd, "worktree", "lock", str(add(here)))
    removed, kept = pruned(here)
    assert removed == []
    assert "locked" in kept["w"]


def test_a_worktree_that_a_client_looks_at_is_kept(there):
    path = add(there)
    with there.connect() as connection:
        created = connection.call("session.create", cwd=str(path), provider="openai", keyless=True)
        session = text(child(created, "session"), "id")
        connection.call("attach", session=session)
        assert pruned(there) == ([], {"w": f"it is in use by {session}"})
    assert pruned(there)[0] == ["w"]
