"""`zot -w`: a session in a worktree."""

import json
from pathlib import Path

import pytest

from tests.needs import needs
from tests.zotctl.worktree.conftest import commit, git

REPLIED = {"steps": [{"type": "text", "deltas": ["done"]}]}


@pytest.fixture
def talking(there):
    """With a model that says `done`."""
    url = there.scripted(*[REPLIED] * 4)
    flags = ("--provider", "openai", "--base-url", url)
    there.shell.env["OPENAI_API_KEY"] = "sk-x"
    there.ask = lambda *args, prompt=("go",): there.zot("-p", *prompt, *flags, *args)
    return there


def worktrees(there):
    return {one["name"]: one for one in json.loads(there.zotctl("worktree", "list", "--json")[1])["worktrees"]}


def sessions(there):
    return [(one["cwd"], one["worktree"]) for one in json.loads(there.zotctl("sessions", "--json")[1])["sessions"]]


def test_a_session_starts_in_a_new_worktree_and_the_end_says_how_to_take_the_work_back(talking):
    code, out, err = talking.ask("-w", "parser")
    path = worktrees(talking)["parser"]["path"]
    assert (code, out) == (0, "done\n")
    new, where, how = err.splitlines()
    assert new == f"new worktree parser on the branch zot/parser: {path}"
    assert where == f"the worktree parser is on the branch zot/parser in {path}"
    assert how.startswith("to return: zot -w parser; to look at its work: zotctl worktree diff parser; ")
    assert how.endswith("to take it back: zotctl worktree merge parser")
    assert sessions(talking) == [(path, "parser")]


def test_the_same_name_uses_the_worktree_again(talking):
    assert talking.ask("--worktree=parser")[0] == 0
    code, _, err = talking.ask("-w", "parser", "-c")
    assert (code, "new worktree" in err) == (0, False)
    assert len(sessions(talking)) == 1


def test_without_a_name_each_worktree_has_one_that_can_be_said(talking):
    assert talking.ask("-w")[0] == talking.ask("--worktree", "--", "go", prompt=())[0] == 0
    first, second = worktrees(talking)
    assert first != second
    assert all(word.isalpha() and word.islower() for name in (first, second) for word in name.split("-"))


def test_the_session_is_in_the_subdirectory_in_which_the_user_is(talking):
    commit(talking.cwd, "packages/one/a", "one\n")
    (talking.cwd / "ignored").mkdir()
    assert talking.ask("-w", "x", "--cwd", "packages/one")[0] == 0
    assert talking.ask("-w", "y", "--cwd", "ignored")[0] == 0
    found = worktrees(talking)
    assert {cwd for cwd, _ in sessions(talking)} == {f"{found['x']['path']}/packages/one", found["y"]["path"]}


def test_a_repository_elsewhere_is_named_in_the_commands(talking, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    talking.shell.cwd = other
    code, _, err = talking.ask("-w", "x", "--cwd", str(talking.cwd))
    assert code == 0
    assert f"to return: cd {talking.cwd} && zot -w x" in err


def test_trust_in_the_same_code_is_passed_on(talking):
    commit(talking.cwd, ".zot/skills/s/SKILL.md", "---\nname: s\ndescription: d\n---\n")
    assert talking.zotctl("trust", "grant", "--yes", str(talking.cwd))[0] == 0
    assert talking.ask("-w", "same")[0] == 0
    (talking.cwd / ".zot" / "skills" / "s" / "SKILL.md").write_text("---\nname: s\ndescription: other\n---\n")
    assert talking.zotctl("trust", "grant", "--yes", str(talking.cwd))[0] == 0
    assert talking.ask("-w", "old")[0] == 0
    found = json.loads(talking.zotctl("trust", "list", "--json")[1])["workspaces"]
    paths = {one["path"] for one in found}
    assert worktrees(talking)["same"]["path"] in paths
    assert worktrees(talking)["old"]["path"] not in paths


def refused(shell, *args):
    code, out, err = shell.zot("-p", "go", *args)
    assert (code, out, err.count("\n")) == (1, "", 1)
    return err


def test_without_a_repository_or_a_commit_one_sentence_says_so(shell):
    needs("git")
    assert f"zot: {shell.cwd} is not a git repository" in refused(shell, "-w")
    git(shell.cwd, "init", "-q")
    assert "this repository has no commit yet" in refused(shell, "-w", "x")
    git(shell.cwd, "config", "core.bare", "true")
    assert "this repository is bare" in refused(shell, "-w")


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (("-w", "fix the tests"), 'git does not take "fix the tests" as the name of a branch'),
        (("-w", "x..y"), "git does not take"),
        (("-w", "x", "--session", "s_1"), "it cannot be used with --session"),
        (("-w", "x", "--resume", "s_1"), "it cannot be used with --resume ID"),
        (("-w", "x", "--host", "wss://box"), "makes a worktree on this machine"),
        (("-cw", "x"), "-w must not be joined with other flags"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_made(there, args, reason):
    assert reason in refused(there, *args)
    assert worktrees(there) == {}


@pytest.mark.parametrize("command", ["rpc", "acp"])
def test_programs_that_choose_their_directory_take_no_worktree(here, command):
    code, _, err = here.zot(command, "-w", "x")
    assert (code, err.count("\n")) == (2, 1)
    assert "create one with `zotctl worktree add NAME`" in err


def test_help_and_bad_usage_make_nothing(here):
    assert here.zot("-w", "x", "--help")[0] == 0
    assert here.zot("-w", "x", "--no-such-flag")[0] == 2
    assert git(here.cwd, "branch", "--list", "zot/*") == ""


def test_a_set_up_command_that_fails_starts_no_session(talking):
    home = Path(talking.shell.env["ZOT_HOME"])
    (home / "config.toml").write_text('[worktree]\nsetup = ["false"]\n')
    code, out, err = talking.ask("-w", "x")
    assert (code, out) == (1, "")
    assert "the set-up command failed with exit code 1" in err
    assert sessions(talking) == []
    assert talking.ask("-w", "x")[:2] == (0, "done\n")


def test_names_are_completed(here):
    for name in ("parser", "printer", "other"):
        assert here.zotctl("worktree", "add", name)[0] == 0
    for words in (["zot", "-w", "p"], ["zot", "--worktree", "p"], ["zotctl", "worktree", "merge", "p"]):
        out = here.zotctl("candidates", words[0], "--", *words[1:])[1]
        assert [line.split("\t")[0] for line in out.splitlines()] == ["parser", "printer"]
    assert here.zotctl("candidates", "zot", "--", "--worktree=pa")[1].split("\t")[0] == "--worktree=parser"
