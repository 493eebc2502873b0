"""`zotctl checkpoints` as a real command, with real git."""

import json

import pytest

from tests.needs import needs


@pytest.fixture
def here(shell):
    """A shell in a directory with two checkpoints."""
    needs("git")
    shell.env["HOME"] = str(shell.home / "user")
    (shell.cwd / "a").write_text("one\n")
    ok(shell, "record")
    (shell.cwd / "a").write_text("two\n")
    (shell.cwd / "new").write_text("new\n")
    ok(shell, "record")
    return shell


def ok(here, *args):
    code, out, err = here.zotctl("checkpoints", *args)
    assert (code, err) == (0, "")
    return out


def test_list_names_the_checkpoints_newest_first(here):
    lines = ok(here, "list").splitlines()
    assert [line.split()[0] for line in lines] == ["CHECKPOINT", "2", "1"]
    found = json.loads(ok(here, "list", "--json"))
    assert found["directory"] == str(here.cwd)
    assert [(one["number"], one["kind"], one["changed"]) for one in found["checkpoints"]] == [
        (2, "manual", 2),
        (1, "manual", 1),
    ]


def test_a_directory_without_checkpoints_has_an_empty_list(shell):
    needs("git")
    shell.env["HOME"] = str(shell.home / "user")
    assert json.loads(ok(shell, "list", "--json"))["checkpoints"] == []


def test_show_names_what_changed_and_what_is_not_recorded(here):
    (here.cwd / ".gitignore").write_text("*.log\n")
    (here.cwd / "x.log").write_text("x")
    (here.cwd / "new").unlink()
    ok(here, "record")
    out = ok(here, "show", "3")
    assert "  added .gitignore\n  removed new\nnot recorded:\n  x.log (ignored)\n" in out
    shown = json.loads(ok(here, "show", "3", "--json"))
    assert shown["files"] == [{"path": ".gitignore", "change": "added"}, {"path": "new", "change": "removed"}]
    assert shown["left_out"] == [{"path": "x.log", "reason": "ignored", "size_bytes": 0}]


def test_diff_prints_a_patch(here):
    assert "-one\n+two\n" in ok(here, "diff", "1", "--to", "2")
    (here.cwd / "a").write_text("three\n")
    assert "-two\n+three\n" in ok(here, "diff", "2")
    assert ok(here, "diff", "2", "new") == ""


def test_restore_says_what_it_did_and_how_to_undo_it(here):
    out = ok(here, "restore", "1")
    assert out == "restored a\nrestored new\nto undo this: zotctl checkpoints restore 2 --force\n"
    assert (here.cwd / "a").read_text() == "one\n"
    assert not (here.cwd / "new").exists()
    ok(here, "restore", "2", "--force")
    assert (here.cwd / "a").read_text() == "two\n"


def test_restore_leaves_alone_what_changed_since_and_fails(here):
    (here.cwd / "a").write_text("mine\n")
    code, out, _ = here.zotctl("checkpoints", "restore", "1")
    assert code == 1
    assert "left alone: a: changed since it was last recorded\n" in out
    assert (here.cwd / "a").read_text() == "mine\n"
    code, out, _ = here.zotctl("checkpoints", "restore", "1", "--json")
    assert code == 1
    assert json.loads(out)["restored"] == []


def test_one_path_is_restored_from_wherever_the_command_runs(here):
    ok(here, "restore", "1", "a")
    assert (here.cwd / "new").exists()
    code, _, err = here.zotctl("checkpoints", "restore", "1", "../elsewhere")
    assert (code, err) == (1, f"zotctl: ../elsewhere is not in {here.cwd}\n")


def test_record_says_when_nothing_has_changed(here):
    assert ok(here, "record") == "nothing has changed since checkpoint 2\n"


def test_an_unknown_number_and_directory_are_refused(here):
    code, _, err = here.zotctl("checkpoints", "restore", "9")
    assert (code, err) == (1, f"zotctl: there is no checkpoint 9 of {here.cwd}; `zotctl checkpoints list` has all\n")
    code, _, err = here.zotctl("checkpoints", "list", "--cwd", "nowhere")
    assert (code, err) == (1, "zotctl: nowhere is not a directory\n")


def test_the_home_directory_is_refused(here):
    here.env["HOME"] = str(here.cwd)
    code, _, err = here.zotctl("checkpoints", "record")
    assert code == 1
    assert "contains your home directory" in err


def test_numbers_are_completed(here):
    code, out, _ = here.zotctl("candidates", "zotctl", "--", "checkpoints", "restore", "")
    assert code == 0
    assert [line.split("\t")[0] for line in out.splitlines()] == ["2", "1"]
