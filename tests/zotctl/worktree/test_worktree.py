"""`zotctl worktree` as a real command, with real git."""

import json
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.needs import needs
from tests.zotctl.worktree.conftest import add, commit, git, hook, set_author
from zotd import paths
from zotd.client.fields import child, text


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
    failing = hook(here.cwd, "post-checkout", "exit 1")
    assert here.zotctl("worktree", "add", "w")[0] == 1
    failing.unlink()
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


def test_the_list_names_the_sessions_that_work_in_a_worktree(there):
    path = add(there)
    (path / "below").mkdir()
    with there.connect() as connection:
        info = connection.call("session.create", cwd=str(path / "below"), provider="openai", keyless=True)
        connection.call("session.create", cwd=str(there.cwd), provider="openai", keyless=True)
    (listed,) = json.loads(there.zotctl("worktree", "list", "--json")[1])["worktrees"]
    session = text(child(info, "session"), "id")
    assert listed["sessions"] == [session]
    found = json.loads(there.zotctl("sessions", "--json")[1])["sessions"]
    assert {one["id"]: one["worktree"] for one in found if one["worktree"]} == {session: "w"}
    head, *rows = there.zotctl("sessions")[1].splitlines()
    assert "WORKTREE" in head
    assert next(row for row in rows if session in row).split()[-2:] == ["w", str(path / "below")]


def test_a_repository_without_a_commit_is_refused(shell):
    needs("git")
    git(shell.cwd, "init", "-q")
    code, _, err = shell.zotctl("worktree", "add", "w")
    assert (code, err) == (1, "zotctl: this repository has no commit yet; a worktree needs one to begin at\n")


def test_names_that_one_file_system_or_git_cannot_tell_apart_are_refused(here):
    add(here, "fix/parser")
    assert "differs only in capitals" in here.zotctl("worktree", "add", "Fix/Parser")[2]
    for name in ("fix", "fix/parser/more"):
        assert "git cannot have the branch" in here.zotctl("worktree", "add", name)[2]
    assert here.zotctl("worktree", "list", "--json")[1].count('"name"') == 1


def test_a_worktree_on_another_branch_is_still_listed(here):
    path = add(here)
    git(path, "switch", "-qc", "other")
    (listed,) = json.loads(here.zotctl("worktree", "list", "--json")[1])["worktrees"]
    assert (listed["name"], listed["branch"]) == ("w", "other")


def test_commands_that_create_the_same_worktree_at_once_do_not_harm_each_other(here):
    started = [here.start("zotctl", "worktree", "add", "w") for _ in range(4)]
    ended = [(process.communicate(timeout=40), process.returncode) for process in started]
    assert sorted(code for _, code in ended) == [0, 1, 1, 1]
    (path,) = [Path(out.strip()) for (out, _), code in ended if code == 0]
    assert (path / "a").read_text() == "one\n"


def test_a_repository_behind_a_symbolic_link_is_the_same_one(here):
    path = add(here)
    (here.home / "link").symlink_to(here.cwd)
    here.cwd = here.home / "link"
    (listed,) = json.loads(here.zotctl("worktree", "list", "--json")[1])["worktrees"]
    assert listed["path"] == str(path)


def test_a_submodule_has_worktrees_of_its_own(here):
    git(here.cwd, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(here.cwd), "sub")
    outer, here.cwd = here.cwd, here.cwd / "sub"
    set_author(here.cwd)
    path = add(here)
    assert path.parent.name.startswith("sub-")
    commit(path, "b", "two\n")
    git(outer / "sub", "switch", "-qc", "main2")
    assert here.zotctl("worktree", "merge", "w")[0] == 0
    assert (outer / "sub" / "b").read_text() == "two\n"


def test_a_worktree_with_submodules_is_removed_when_it_is_clean(here):
    git(here.cwd, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(here.cwd), "sub")
    git(here.cwd, "commit", "-qm", "sub")
    path = add(here)
    git(path, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
    (path / "sub" / "a").write_text("changed\n")
    assert "uncommitted changes" in here.zotctl("worktree", "remove", "w")[2]
    (path / "sub" / "a").write_text("one\n")
    assert here.zotctl("worktree", "remove", "w")[::2] == (0, "")


def test_a_filter_that_is_missing_is_told_in_one_sentence(here):
    commit(here.cwd, ".gitattributes", "*.bin filter=lfs\n")
    commit(here.cwd, "x.bin", "pointer")
    for name, value in (("smudge", "no-such-program smudge"), ("required", "true")):
        git(here.cwd, "config", f"filter.lfs.{name}", value)
    code, _, err = here.zotctl("worktree", "add", "w")
    assert (code, err.count("\n")) == (1, 1)
    assert "filter" in err
    assert git(here.cwd, "branch", "--list", "zot/*") == ""


def test_a_place_that_cannot_be_written_is_named(here):
    (here.home / "data").write_text("a file")
    code, _, err = here.zotctl("worktree", "add", "w")
    assert (code, err.count("\n")) == (1, 1)
    assert str(here.home / "data") in err


def test_a_read_only_repository_is_told_in_one_sentence(here):
    # Root may write anywhere, so the directory is replaced by one in which no file can be made: it is a file.
    shutil.move(here.cwd / ".git" / "config", here.cwd / ".git" / "kept")
    (here.cwd / ".git" / "config.lock").write_text("")
    shutil.move(here.cwd / ".git" / "kept", here.cwd / ".git" / "config")
    code, _, err = here.zotctl("worktree", "add", "w")
    assert (code, err.count("\n")) == (1, 1)
    assert "config" in err
    assert git(here.cwd, "branch", "--list", "zot/*") == ""


def test_the_list_does_not_start_a_daemon_for_which_systemd_listens(here):
    add(here)
    with tempfile.TemporaryDirectory(prefix="zt-", dir="/tmp") as run, socket.socket(socket.AF_UNIX) as listener:
        del here.env["ZOTD_SOCKET"]
        here.env["XDG_RUNTIME_DIR"] = run
        unit = here.home / ".config" / "systemd" / "user" / "zotd.service"
        unit.parent.mkdir(parents=True)
        unit.write_text(f"[Service]\nEnvironment=ZOT_HOME={here.env['ZOT_HOME']}\n")
        path = Path(paths.socket_path(here.env))
        path.parent.mkdir(parents=True, exist_ok=True)
        listener.bind(str(path))
        listener.listen()
        listener.setblocking(False)
        assert here.zotctl("worktree", "list")[::2] == (0, "")
        with pytest.raises(BlockingIOError):  # it was not even connected to
            listener.accept()
