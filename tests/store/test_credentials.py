"""`auth.json`."""

import json
import os
import resource
import stat
from pathlib import Path

import pytest

from zotd import logs
from zotd.core.ports import StorageError
from zotd.store import credentials


@pytest.fixture
def path(tmp_path):
    return tmp_path / "auth.json"


def write(path, content, mode=0o600):
    path.write_text(content)
    path.chmod(mode)


def test_saved_keys_are_loaded_from_a_file_with_mode_600(path):
    credentials.save(path, {"anthropic": "sk-one-two-three", "openai": "sk-x"})
    assert credentials.load(path) == {"anthropic": "sk-one-two-three", "openai": "sk-x"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["openai"] == {"api_key": "sk-x"}


def test_without_a_file_there_are_no_keys(path):
    assert credentials.load(path) == {}


def test_unknown_fields_are_ignored_when_loading(path):
    write(path, '{"x": {"api_key": "k", "organisation": "o"}}')
    assert credentials.load(path) == {"x": "k"}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666, 0o601])
def test_a_file_with_open_permissions_is_refused_with_advice(path, mode):
    write(path, '{"x": {"api_key": "k"}}', mode)
    with pytest.raises(StorageError, match=f"open to other users .*: chmod 600 {path}"):
        credentials.load(path)


@pytest.mark.parametrize(
    "content", ['{"x": "VALUE"}', '{"x": {"key": "VALUE"}}', '{"x": {"api_key": 5}}', '{"VALUE', "[]", "\x00"]
)
def test_a_malformed_file_is_refused_with_an_example_and_without_its_keys(path, content):
    write(path, content)
    with pytest.raises(StorageError, match=r'auth\.json must look like \{"anthropic"') as caught:
        credentials.load(path)
    assert "VALUE" not in str(caught.value)


def test_deeply_nested_json_is_refused_as_malformed(path):
    write(path, '{"x": {"api_key": "k", "deep": ' + "[" * 100_000 + "]" * 100_000 + "}}")
    with pytest.raises(StorageError, match="must look like"):
        credentials.load(path)


@pytest.mark.parametrize("make", [lambda path: os.mkfifo(path, 0o600), os.mkdir])
def test_a_path_that_is_no_regular_file_is_refused_at_once(path, make):
    make(path)
    before = len(list(Path("/dev/fd").iterdir()))
    with pytest.raises(StorageError):
        credentials.load(path)
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_saving_replaces_the_file_and_leaves_no_temporary_file(path):
    credentials.save(path, {"x": "old"})
    credentials.save(path, {"x": "new"})
    assert credentials.load(path) == {"x": "new"}
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_save_leaves_no_temporary_file(path):
    path.mkdir()
    with pytest.raises(StorageError, match="cannot be written"):
        credentials.save(path, {"x": "new"})
    assert list(path.parent.iterdir()) == [path]


def test_loaded_keys_are_masked_in_the_log(path):
    write(path, '{"x": {"api_key": "a-very-unlikely-key"}}')
    credentials.load(path)
    assert logs.masked("it was a-very-unlikely-key!") == f"it was {logs.MASK}!"


# --- one key at a time ----------------------------------------------------------------------------------------


def test_a_key_can_be_added_and_removed(path):
    write(path, '{"x": {"api_key": "old", "organisation": "o"}, "y": {"api_key": "k"}}')
    assert credentials.change(path, "x", "new")
    assert credentials.change(path, "z", "third")
    assert json.loads(path.read_text()) == {
        "x": {"api_key": "new", "organisation": "o"},
        "y": {"api_key": "k"},
        "z": {"api_key": "third"},
    }
    assert credentials.change(path, "x", None)
    assert credentials.load(path).keys() == {"y", "z"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_removing_a_missing_key_returns_false(path):
    assert not credentials.change(path, "x", None)
    assert not path.exists()


@pytest.mark.parametrize(("content", "mode"), [("{", 0o600), ("{}", 0o644)])
def test_a_malformed_file_is_not_replaced(path, content, mode):
    write(path, content, mode)
    with pytest.raises(StorageError):
        credentials.change(path, "x", "key")
    assert path.read_text() == content


def test_a_stored_key_is_masked_in_the_log(path):
    credentials.change(path, "x", "sk-just-put-there")
    assert "sk-just-put-there" not in logs.masked("it is sk-just-put-there")


def test_other_fields_are_kept_unchanged(path):
    write(path, '{"x": {"api_key": "old", "limit": 1e400, "price": 1.10, "id": 123456789012345678901234567890}}')
    credentials.change(path, "y", "new")
    for written in ("1e400", "1.10", "123456789012345678901234567890"):
        assert f": {written}" in path.read_text()


def test_a_symbolic_link_to_the_file_is_kept(path, tmp_path):
    kept = tmp_path / "dotfiles"
    kept.mkdir()
    write(kept / "keys.json", '{"x": {"api_key": "old"}}')
    path.symlink_to(kept / "keys.json")
    credentials.change(path, "x", "new")
    assert path.is_symlink()
    assert credentials.load(kept / "keys.json") == {"x": "new"}
    assert stat.S_IMODE((kept / "keys.json").stat().st_mode) == 0o600


def test_a_shortage_of_descriptors_is_reported_as_such(path):
    write(path, "{}")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        with pytest.raises(StorageError, match="has reached its limit of 3 open files"):
            credentials.load(path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
