"""Appending rules to a configuration file."""

import stat
import threading

import pytest

from zotd import config
from zotd.core.permissions import Action, PermissionRule, toml
from zotd.store.rules import NotSavedError, append, check

RULE = PermissionRule("bash", Action.ALLOW, 'git commit -m "a\tb" \x7f é')

OURS = """\
# my settings
model = "m"   # the good one

[limits]
idle_exit_s = 5
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "config.toml"


def test_a_missing_file_is_created_private_with_the_rule(path):
    append(path, RULE)
    assert path.read_text() == toml(RULE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("end", ["", "\n", "\n\n# the end"])
def test_existing_content_is_kept_unchanged(path, end):
    path.write_text(OURS.rstrip("\n") + end)
    path.chmod(0o644)
    before = path.read_text()
    append(path, RULE)
    append(path, PermissionRule("write", Action.ALLOW, "/w/a"))
    assert path.read_text().startswith(before)
    loaded = config.load(path, {}).config
    assert (loaded.model, loaded.limits.idle_exit_s) == ("m", 5)
    assert [(rule.tool, rule.match) for rule in loaded.rules] == [("bash", RULE.match), ("write", "/w/a")]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_windows_line_ends_are_kept(path):
    path.write_bytes(b'model = "m"\r\n')
    append(path, RULE)
    assert path.read_bytes().startswith(b'model = "m"\r\n\n[[rules]]\n')


def test_an_existing_rule_is_not_added_again(path):
    append(path, RULE)
    before = path.stat()
    append(path, RULE)
    assert path.stat() == before


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"model = [", "not valid TOML"),
        (b"max_steps = 0", "max_steps must be"),
        (b'rules = [{tool = "a", action = "deny"}]', "cannot be added"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_a_file_that_would_not_parse_afterwards_is_not_changed(path, content, words):
    path.write_bytes(content)
    for attempt in (check, append):
        with pytest.raises(NotSavedError, match=words):
            attempt(path, RULE)
    assert path.read_bytes() == content


def test_a_rule_with_a_lone_surrogate_is_not_written(path):
    with pytest.raises(NotSavedError, match="surrogate"):
        append(path, PermissionRule("bash", Action.ALLOW, "\ud800"))
    assert not path.exists()


def test_a_directory_in_place_of_the_file_is_reported(path):
    path.mkdir()
    with pytest.raises(NotSavedError, match="cannot be read: Is a directory"):
        append(path, RULE)


def test_check_writes_nothing(path):
    check(path, RULE)
    assert not path.exists()


def test_a_symbolic_link_to_the_configuration_is_kept(path, tmp_path):
    real = tmp_path / "dotfiles" / "zot.toml"
    real.parent.mkdir()
    real.write_text(OURS)
    path.symlink_to(real)
    append(path, RULE)
    assert path.is_symlink()
    assert real.read_text() == f"{OURS}\n{toml(RULE)}"


def test_concurrently_added_rules_are_all_saved(path):
    rules = [PermissionRule("bash", Action.ALLOW, f"make {number}") for number in range(8)]
    threads = [threading.Thread(target=append, args=(path, rule)) for rule in rules]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {rule.match for rule in config.load(path, {}).config.rules} == {rule.match for rule in rules}
