"""Trust in the code of workspaces."""

import importlib.util
import json
import os
import py_compile
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from zotd import tree_digest
from zotd.core.ports import StorageError
from zotd.store.trust import Changed, NotGrantedError, NothingToTrust, Trust, Trusted, UntrustedCode, code_of


class Workspace:
    def __init__(self, path):
        self.cwd = path / "shop"
        self.home = path / "home"
        self.cwd.mkdir()
        self.home.mkdir()
        self.trust = Trust(self.home)

    def write(self, path, content="x"):
        file = self.cwd / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return file

    def link(self, path, target):
        link = self.cwd / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
        return link

    def state(self):
        return self.trust.state(self.cwd)

    def granted(self):
        self.trust.grant(self.cwd)
        assert isinstance(self.state(), Trusted)

    def changed(self):
        state = self.state()
        assert isinstance(state, Changed)
        return state.files


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path)


TOOL = ".zot/extensions/tools/greet.py"
"""Path of a module; any code would do."""


# Items


def test_a_workspace_without_code_has_nothing_to_trust(workspace):
    workspace.write("src/main.py")
    workspace.write(".zot/sessions/x")
    workspace.write(".git/hooks/pre-commit")
    assert isinstance(workspace.state(), NothingToTrust)


def test_code_is_listed_by_names_that_users_know(workspace):
    for path in (
        ".zot/extensions/guard/extension.json",
        ".zot/extensions/guard/node_modules/a/index.js",
        TOOL,
        ".zot/extensions/channels/mail.py",
        ".zot/skills/review/SKILL.md",
        ".zot/config.toml",
        ".mcp.json",
    ):
        workspace.write(path)
    state = workspace.state()
    assert isinstance(state, UntrustedCode)
    assert state.code.items == [
        ".mcp.json",
        ".zot/config.toml",
        ".zot/extensions/channels/mail.py",
        ".zot/extensions/guard",
        TOOL,
        ".zot/skills/review",
    ]
    assert len(state.code.files) == 7
    assert len(state.code.digest) == 64


def test_the_users_own_home_is_not_part_of_a_workspace(tmp_path):
    home = tmp_path / ".zot"
    (home / "extensions/a").mkdir(parents=True)
    (home / "extensions/a/extension.json").write_text("{}")
    trust = Trust(home)
    assert isinstance(trust.state(tmp_path), NothingToTrust)
    (tmp_path / ".mcp.json").write_text("{}")
    state = trust.state(tmp_path)
    assert isinstance(state, UntrustedCode)
    assert state.code.items == [".mcp.json"]


# Grant, change, revoke


def test_a_grant_applies_to_every_process(workspace):
    workspace.write(TOOL)
    code = code_of(workspace.cwd, home=workspace.home)
    assert workspace.trust.grant(workspace.cwd, digest=code.digest) == Trusted(code)
    assert Trust(workspace.home).state(workspace.cwd) == Trusted(code)
    assert workspace.trust.workspaces() == [str(workspace.cwd)]
    assert stat.S_IMODE((workspace.home / "trust.json").stat().st_mode) == 0o600


def test_a_workspace_is_identified_by_its_real_path(workspace, tmp_path):
    workspace.write(TOOL)
    (tmp_path / "alias").symlink_to(workspace.cwd)
    workspace.trust.grant(tmp_path / "alias")
    assert isinstance(workspace.state(), Trusted)
    other = tmp_path / "other"
    workspace.cwd.rename(other)
    assert isinstance(workspace.trust.state(other), UntrustedCode)


def test_code_that_changes_while_it_is_scanned_is_not_granted(workspace):
    workspace.write(TOOL)
    shown = code_of(workspace.cwd, home=workspace.home).digest
    workspace.write(TOOL, "worse")
    with pytest.raises(NotGrantedError, match="has changed since you were asked; review it again"):
        workspace.trust.grant(workspace.cwd, digest=shown)
    assert isinstance(workspace.state(), UntrustedCode)


def becomes_a_pipe(workspace):
    (workspace.cwd / TOOL).unlink()
    os.mkfifo(workspace.cwd / TOOL)


@pytest.mark.parametrize(
    "change",
    [
        lambda w: w.write(TOOL, "y"),
        lambda w: (w.cwd / TOOL).chmod(0o755),
        lambda w: (w.cwd / TOOL).unlink(),
        lambda w: ((w.cwd / TOOL).unlink(), w.link(TOOL, "other.py")),
        becomes_a_pipe,
    ],
)
def test_any_change_of_a_file_requires_a_new_grant(change, workspace):
    workspace.write(TOOL)
    workspace.write(".mcp.json")
    workspace.granted()
    change(workspace)
    assert workspace.changed() == [TOOL]


def test_every_file_that_differs_is_named(workspace):
    for name in ("same", "changed", "gone"):
        workspace.write(f".zot/extensions/x/{name}")
    workspace.granted()
    workspace.write(".zot/extensions/x/changed", "y")
    workspace.write(".zot/extensions/x/new\n")
    (workspace.cwd / ".zot/extensions/x/gone").unlink()
    assert workspace.changed() == [f".zot/extensions/x/{name}" for name in ("changed", "gone", "new\n")]


def test_code_is_trusted_again_when_a_change_is_undone(workspace):
    workspace.write(TOOL)
    workspace.granted()
    workspace.write(TOOL, "y")
    workspace.changed()
    workspace.write(TOOL)
    os.utime(workspace.cwd / TOOL, (1, 1))
    assert isinstance(workspace.state(), Trusted)


def test_trust_in_a_removed_workspace_can_be_revoked(workspace):
    workspace.write(TOOL)
    workspace.granted()
    workspace.cwd.rename(workspace.cwd.with_name("gone"))
    assert workspace.trust.revoke(workspace.cwd)
    assert not workspace.trust.revoke(workspace.cwd)
    assert workspace.trust.workspaces() == []


def test_trust_can_be_revoked_by_any_path_of_the_workspace(workspace, tmp_path):
    workspace.write(TOOL)
    workspace.granted()
    (tmp_path / "alias").symlink_to(workspace.cwd)
    assert workspace.trust.revoke(tmp_path / "alias")
    assert isinstance(workspace.state(), UntrustedCode)


# Changes


def test_changed_code_is_trusted_only_after_a_new_grant(workspace):
    workspace.write(TOOL)
    workspace.granted()
    workspace.write(".zot/extensions/x/state.json")
    assert Trust(workspace.home).state(workspace.cwd) == workspace.state()
    assert workspace.changed() == [".zot/extensions/x/state.json"]
    workspace.granted()


def test_new_code_in_a_trusted_empty_workspace_requires_a_grant(workspace):
    assert workspace.trust.grant(workspace.cwd) == workspace.state()
    workspace.write(TOOL)
    assert workspace.changed() == [TOOL]


def test_programs_named_by_the_configuration_are_part_of_the_code(workspace):
    workspace.trust = Trust(workspace.home, lambda _: ["bin/python", "bin/absent"])
    workspace.write("bin/python")
    state = workspace.state()
    assert isinstance(state, UntrustedCode)
    assert state.code.items == ["bin/python"]
    workspace.granted()
    workspace.write("bin/python", "y")
    assert workspace.changed() == ["bin/python"]


# Links and special files


def test_a_link_within_the_workspace_includes_its_target(workspace):
    workspace.write("packages/guard/main.js")
    workspace.link(".zot/extensions/guard", "../../packages/guard")
    workspace.granted()
    workspace.write("packages/guard/main.js", "y")
    assert workspace.changed() == ["packages/guard/main.js"]
    state = workspace.state()
    assert isinstance(state, Changed)
    assert state.code.items == [".zot/extensions/guard"]


def test_a_link_to_the_outside_counts_by_its_target_path(workspace, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "main.js").write_text(name)
    workspace.link("between", tmp_path / "one")
    workspace.link(".zot/extensions/guard", "../../between")
    workspace.granted()
    (tmp_path / "one/main.js").write_text("the user's own business")
    assert isinstance(workspace.state(), Trusted)
    (workspace.cwd / "between").unlink()
    workspace.link("between", tmp_path / "two")
    assert workspace.changed() == [".zot/extensions/guard"]


def test_a_linked_directory_within_the_workspace_is_scanned(workspace):
    workspace.write("conf/extensions/guard/main.js")
    workspace.write("conf/not-code")
    workspace.link(".zot", "conf")
    state = workspace.state()
    assert isinstance(state, UntrustedCode)
    assert state.code.items == [".zot"]
    assert list(state.code.files) == [".zot", "conf/extensions/guard/main.js"]


def test_a_directory_linked_to_the_outside_is_listed(workspace, tmp_path):
    (tmp_path / "conf/extensions").mkdir(parents=True)
    workspace.link(".zot", tmp_path / "conf")
    state = workspace.state()
    assert isinstance(state, UntrustedCode)
    assert state.code.items == [".zot"]


@pytest.mark.parametrize("target", [".", "..", "x", "../../.zot/extensions/x"])
def test_a_loop_of_links_ends(target, workspace):
    workspace.link(".zot/extensions/x", target)
    workspace.granted()


def test_file_names_that_are_not_utf8_are_distinguished(workspace):
    folder = os.fsencode(workspace.write(TOOL).parent)
    Path(os.fsdecode(folder + b"/\xff.py")).write_text("x")
    workspace.granted()
    Path(os.fsdecode(folder + b"/\xff.py")).write_text("y")
    assert workspace.changed() == [r".zot/extensions/tools/\xff.py"]


# Ignored files


def test_bytecode_that_python_checks_does_not_count(workspace):
    source = workspace.write(TOOL)
    workspace.granted()
    py_compile.compile(str(source), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    assert Path(importlib.util.cache_from_source(str(source))).exists()
    assert isinstance(workspace.state(), Trusted)


@pytest.mark.parametrize("mode", ["CHECKED_HASH", "UNCHECKED_HASH"])
def test_bytecode_that_python_runs_unchecked_counts(mode, workspace):
    source = workspace.write(TOOL)
    workspace.granted()
    py_compile.compile(str(source), invalidation_mode=py_compile.PycInvalidationMode[mode])
    cached = os.path.relpath(importlib.util.cache_from_source(str(source)), workspace.cwd)
    assert workspace.changed() == [cached]


def test_repository_metadata_does_not_count_and_dependencies_do(workspace):
    workspace.write(".zot/extensions/x/main.js")
    workspace.granted()
    workspace.write(".zot/extensions/x/.git/index")
    assert isinstance(workspace.state(), Trusted)
    workspace.write(".zot/extensions/x/node_modules/a/index.js")
    assert workspace.changed() == [".zot/extensions/x/node_modules/a/index.js"]


def test_code_that_is_too_large_to_scan_counts_as_changed(workspace):
    workspace.write(TOOL)
    workspace.granted()
    with workspace.write(".zot/extensions/x/weights").open("r+b") as file:
        file.truncate(tree_digest.MAX_BYTES + 1)
    state = workspace.state()
    assert isinstance(state, Changed)
    assert (state.files, state.code.items) == ([], [".zot/extensions"])
    assert state.code.excess.endswith("has more than 200 MiB to look at")
    with pytest.raises(
        NotGrantedError, match="200 MiB to look at: it cannot be trusted permanently; use --trust each time"
    ):
        workspace.trust.grant(workspace.cwd)
    (workspace.cwd / ".zot/extensions/x/weights").unlink()
    assert isinstance(workspace.state(), Trusted)


# The file


@pytest.mark.parametrize("content", ["[]", '{"workspaces": {"/": {}}}', "{", "\xff"])
def test_a_damaged_file_trusts_nothing_and_is_not_replaced(content, workspace):
    workspace.write(TOOL)
    path = workspace.home / "trust.json"
    path.write_bytes(content.encode("latin-1"))
    path.chmod(0o600)
    for act in (workspace.trust.state, workspace.trust.grant, workspace.trust.revoke):
        with pytest.raises(StorageError, match=r"trust\.json is damaged, remove it to trust nothing"):
            act(workspace.cwd)
    assert path.read_bytes() == content.encode("latin-1")


def test_a_file_that_others_can_write_is_refused(workspace):
    workspace.write(TOOL)
    workspace.granted()
    (workspace.home / "trust.json").chmod(0o620)
    with pytest.raises(StorageError, match=r"other users can write it \(-rw--w----\): chmod 600 it"):
        workspace.state()


def test_nothing_is_granted_if_the_home_cannot_be_written(workspace):
    workspace.write(TOOL)
    trust = Trust(workspace.home / "missing")
    with pytest.raises(StorageError, match=r"trust\.json cannot be written: No such file or directory"):
        trust.grant(workspace.cwd)
    assert isinstance(trust.state(workspace.cwd), UntrustedCode)


def test_concurrent_grants_are_all_saved(workspace, tmp_path):
    program = (
        "import sys; from pathlib import Path; from zotd.store.trust import Trust\n"
        "for number in range(20): Trust(Path(sys.argv[1])).grant(Path(sys.argv[2]) / str(number))\n"
    )
    parents = [tmp_path / name for name in "abc"]
    granting = [subprocess.Popen([sys.executable, "-c", program, workspace.home, parent]) for parent in parents]
    assert [process.wait() for process in granting] == [0, 0, 0]
    assert len(workspace.trust.workspaces()) == 60
    assert len(json.loads((workspace.home / "trust.json").read_bytes())["workspaces"]) == 60
