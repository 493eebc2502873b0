"""What a new worktree gets besides what git has: ignored files by patterns, and the set-up command."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.zotctl.worktree.conftest import add, commit, git


def configure(shell, **settings):
    """Write the user's configuration."""
    home = Path(shell.env["ZOT_HOME"])
    home.mkdir(mode=0o700, exist_ok=True)
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    (home / "config.toml").write_text("\n".join(["[worktree]", *lines, ""]))


def write(folder, **files):
    """Write files; `__` in a name is a slash, a leading `dot_` a dot."""
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


# --- ignored files ----------------------------------------------------------------------------------------------


def test_ignored_files_that_match_a_pattern_are_copied(here):
    commit(here.cwd, ".gitignore", ".env*\nconfig/\nnode_modules/\n")
    write(here.cwd, dot_env="A=1\n", dot_env_b="B=1\n", config__deep__x="x\n", config__y="y\n", node_modules__m="m\n")
    write(here.cwd, dot_worktreeinclude="# comment\n\n.env\nconfig/*\n!config/y\n", untracked="mine\n")
    (here.cwd / "config" / "link").symlink_to("deep/x")
    (here.cwd / ".env").chmod(0o600)
    path = add(here)
    assert (path / ".env").read_text() == "A=1\n"
    assert (path / ".env").stat().st_mode & 0o777 == 0o600
    assert (path / "config" / "deep" / "x").read_text() == "x\n"
    assert (path / "config" / "link").readlink() == Path("deep/x")
    assert not any((path / name).exists() for name in (".env_b", "node_modules", "untracked", "config/y"))
    assert git(path, "status", "--porcelain") == ""


def test_the_users_own_patterns_are_added(here):
    commit(here.cwd, ".gitignore", ".env\n.key\n")
    write(here.cwd, dot_env="A=1\n", dot_key="k\n", dot_worktreeinclude=".env\n")
    configure(here, include=[".key"])
    path = add(here)
    assert ((path / ".env").exists(), (path / ".key").exists()) == (True, True)


def test_nothing_is_copied_over_a_file_or_through_a_link_out_of_the_worktree(here):
    commit(here.cwd, ".gitignore", "out/\n*.local\n")
    outside = here.home / "outside"
    outside.mkdir()
    (here.cwd / "out").symlink_to(outside)
    git(here.cwd, "add", "-f", "out")
    commit(here.cwd, "kept.local", "tracked\n")
    (here.cwd / "out").unlink()
    write(here.cwd, out__x="x\n", kept__dot_local="", dot_worktreeinclude="out/\n*.local\n")
    (here.cwd / "kept.local").write_text("changed\n")
    path = add(here)
    assert list(outside.iterdir()) == []
    assert (path / "kept.local").read_text() == "tracked\n"


def test_a_special_file_is_not_copied(here):
    commit(here.cwd, ".gitignore", "pipe\n")
    os.mkfifo(here.cwd / "pipe")
    write(here.cwd, dot_worktreeinclude="pipe\n")
    assert not (add(here) / "pipe").exists()


# --- the set-up command -----------------------------------------------------------------------------------------


def test_the_command_runs_once_in_the_new_worktree_and_its_output_is_shown(here):
    configure(here, setup=["sh", "-c", 'pwd; echo "$ZOT_MAIN_WORKTREE" > main; cat'])
    code, out, err = here.zotctl("worktree", "add", "w")
    path = Path(out.strip())
    assert code == 0
    assert out == f"{path}\n"
    lines = err.splitlines()
    assert lines[0].startswith("setting up w: sh -c")
    assert lines[1] == str(path)
    assert lines[2].startswith("w was set up in")
    assert (path / "main").read_text() == f"{here.cwd}\n"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["sh", "-c", "echo broken >&2; exit 3"], "failed with exit code 3"),
        (["sh", "-c", "kill -9 $$"], f"was ended by signal {int(signal.SIGKILL)}"),
        (["no-such-program"], "cannot be started: No such file or directory"),
    ],
)
def test_when_the_command_fails_the_worktree_stays_and_the_message_says_what_to_do(here, command, reason):
    configure(here, setup=command)
    code, out, err = here.zotctl("worktree", "add", "w")
    assert (code, out) == (1, "")
    sentence = err.splitlines()[-1]
    assert f"the worktree w was created, but the set-up command {reason}; to repeat it: cd " in sentence
    assert sentence.endswith("to use it as it is: zot -w w; to discard it: zotctl worktree remove --force w")
    assert json.loads(here.zotctl("worktree", "list", "--json")[1])["worktrees"][0]["name"] == "w"


def test_a_command_that_takes_too_long_is_stopped_with_its_children(here):
    os.mkfifo(here.home / "held")
    script = f"sh -c 'exec 3> {here.home}/held; kill -STOP $$; sleep 600' & wait"
    configure(here, setup=["sh", "-c", script], setup_timeout_s=0.5)
    reader = os.open(here.home / "held", os.O_RDONLY | os.O_NONBLOCK)
    try:
        code, _, err = here.zotctl("worktree", "add", "w")
        assert code == 1
        assert "took longer than 0.5 s (worktree.setup_timeout_s) and was stopped" in err
        os.set_blocking(reader, True)
        assert os.read(reader, 1) == b""  # the end of the pipe: its only writer has ended
    finally:
        os.close(reader)


def test_bad_configuration_is_told_in_one_sentence(here):
    configure(here, setup="npm ci")
    code, _, err = here.zotctl("worktree", "add", "w")
    assert (code, err.count("\n")) == (1, 1)
    assert "worktree.setup must be a list of strings" in err


# --- the command of a project -----------------------------------------------------------------------------------


def of_project(there, *command):
    write(there.cwd, dot_zot__config__dot_toml="")
    (there.cwd / ".zot" / "config.toml").write_text(f"[worktree]\nsetup = {json.dumps(command)}\n")


def test_the_command_of_a_project_runs_only_if_it_is_trusted_as_it_is(there):
    of_project(there, "touch", "set-up")
    code, out, err = there.zotctl("worktree", "add", "one")
    assert code == 0
    assert not (Path(out.strip()) / "set-up").exists()
    grant = f"zotctl trust grant {there.cwd}"
    assert f"is not run, because {there.cwd} is not trusted: touch set-up" in err
    assert grant in err
    assert there.zotctl("trust", "grant", "--yes", str(there.cwd))[0] == 0
    code, out, _ = there.zotctl("worktree", "add", "two")
    assert (code, (Path(out.strip()) / "set-up").exists()) == (0, True)
    of_project(there, "touch", "other")
    code, out, err = there.zotctl("worktree", "add", "three")
    assert (code, (Path(out.strip()) / "other").exists()) == (0, False)
    assert grant in err


def test_a_trusted_project_sets_its_worktrees_up_instead_of_the_user(there):
    configure(there.shell, setup=["touch", "users"])
    of_project(there, "touch", "projects")
    code, out, _ = there.zotctl("worktree", "add", "one")
    assert (code, [path.name for path in Path(out.strip()).iterdir() if path.suffix == "" and "s" in path.name]) == (
        0,
        ["users"],
    )
    assert there.zotctl("trust", "grant", "--yes", str(there.cwd))[0] == 0
    path = Path(there.zotctl("worktree", "add", "two")[1].strip())
    assert ((path / "users").exists(), (path / "projects").exists()) == (False, True)
