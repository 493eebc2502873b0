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


def test_what_was_saved_is_loaded_from_a_file_of_mode_600(path):
    credentials.save(path, {"anthropic": "sk-one-two-three", "openai": "sk-x"})
    assert credentials.load(path) == {"anthropic": "sk-one-two-three", "openai": "sk-x"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["openai"] == {"api_key": "sk-x"}


def test_without_a_file_there_are_no_keys(path):
    assert credentials.load(path) == {}


def test_fields_that_are_not_known_are_no_error(path):
    write(path, '{"x": {"api_key": "k", "organisation": "o"}}')
    assert credentials.load(path) == {"x": "k"}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666, 0o601])
def test_a_file_that_others_may_touch_is_refused_with_the_way_out(path, mode):
    write(path, '{"x": {"api_key": "k"}}', mode)
    with pytest.raises(StorageError, match=f"open to other users .*: chmod 600 {path}"):
        credentials.load(path)


@pytest.mark.parametrize(
    "content", ['{"x": "VALUE"}', '{"x": {"key": "VALUE"}}', '{"x": {"api_key": 5}}', '{"VALUE', "[]", "\x00"]
)
def test_another_form_is_refused_with_an_example_and_without_the_keys(path, content):
    write(path, content)
    with pytest.raises(StorageError, match=r'auth\.json must look like \{"anthropic"') as caught:
        credentials.load(path)
    assert "VALUE" not in str(caught.value)


def test_json_that_is_nested_without_end_is_of_another_form(path):
    write(path, '{"x": {"api_key": "k", "deep": ' + "[" * 100_000 + "]" * 100_000 + "}}")
    with pytest.raises(StorageError, match="must look like"):
        credentials.load(path)


@pytest.mark.parametrize("make", [lambda path: os.mkfifo(path, 0o600), os.mkdir])
def test_what_is_no_file_is_refused_at_once_and_leaves_nothing_open(path, make):
    make(path)
    before = len(list(Path("/dev/fd").iterdir()))
    with pytest.raises(StorageError):
        credentials.load(path)
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_saving_replaces_the_file_and_leaves_nothing_beside_it(path):
    credentials.save(path, {"x": "old"})
    credentials.save(path, {"x": "new"})
    assert credentials.load(path) == {"x": "new"}
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_save_leaves_nothing_behind(path):
    path.mkdir()
    with pytest.raises(StorageError, match="cannot be written"):
        credentials.save(path, {"x": "new"})
    assert list(path.parent.iterdir()) == [path]


def test_keys_are_hidden_from_the_log(path):
    write(path, '{"x": {"api_key": "a-very-unlikely-key"}}')
    credentials.load(path)
    assert logs.masked("it was a-very-unlikely-key!") == f"it was {logs.MASK}!"


# --- one key at a time ----------------------------------------------------------------------------------------


def test_a_key_is_put_beside_what_is_there_and_taken_out_again(path):
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


def test_what_is_not_there_cannot_be_taken_out(path):
    assert not credentials.change(path, "x", None)
    assert not path.exists()


@pytest.mark.parametrize(("content", "mode"), [("{", 0o600), ("{}", 0o644)])
def test_a_file_that_cannot_be_used_is_not_replaced(path, content, mode):
    write(path, content, mode)
    with pytest.raises(StorageError):
        credentials.change(path, "x", "key")
    assert path.read_text() == content


def test_a_key_that_was_put_there_is_hidden_from_the_log(path):
    credentials.change(path, "x", "sk-just-put-there")
    assert "sk-just-put-there" not in logs.masked("it is sk-just-put-there")


def test_what_else_is_there_stays_as_it_was_written(path):
    write(path, '{"x": {"api_key": "old", "limit": 1e400, "price": 1.10, "id": 123456789012345678901234567890}}')
    credentials.change(path, "y", "new")
    for written in ("1e400", "1.10", "123456789012345678901234567890"):
        assert f": {written}" in path.read_text()


def test_a_link_to_where_the_file_is_kept_stays_one(path, tmp_path):
    kept = tmp_path / "dotfiles"
    kept.mkdir()
    write(kept / "keys.json", '{"x": {"api_key": "old"}}')
    path.symlink_to(kept / "keys.json")
    credentials.change(path, "x", "new")
    assert path.is_symlink()
    assert credentials.load(kept / "keys.json") == {"x": "new"}
    assert stat.S_IMODE((kept / "keys.json").stat().st_mode) == 0o600


def test_without_a_free_descriptor_the_limit_is_named_and_not_the_file(path):
    write(path, "{}")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        with pytest.raises(StorageError, match="has reached its limit of 3 open files"):
            credentials.load(path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
