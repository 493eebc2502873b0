"""Which processes serve channels, and what they are given."""

import json
import os
import sys

import pytest

from zotd.channels.programs import TOKEN, URL, Programs
from zotd.config import TelegramSection
from zotd.exthost.manifest import ReloadBy

OFF, ON = TelegramSection(), TelegramSection(enabled=True, base_url="http://127.0.0.1:9")


@pytest.fixture
def module(tmp_path):
    """`module(name)`: a file among the user's channels."""

    def module(name):
        path = tmp_path / "extensions" / "channels" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        return path

    return module


def names(found):
    return [manifest.name for manifest in found.manifests]


def test_each_file_has_a_process_that_is_replaced_and_works_in_a_private_directory(tmp_path, module):
    for name in ("chat.py", "_helper.py", "another.py", "notes.txt"):
        module(name)
    found = Programs(tmp_path, OFF, python="/usr/bin/python3").discover()
    assert names(found) == ["py-another", "py-chat"]
    manifest = found.manifests[1]
    assert (manifest.argv[0], manifest.argv[2:]) == (
        "/usr/bin/python3",
        (str(tmp_path / "extensions"), "--channel", "chat"),
    )
    assert (manifest.reload, manifest.directory, manifest.env) == (
        ReloadBy.REPLACE,
        tmp_path / "data" / "py-chat",
        (),
    )
    assert manifest.directory.stat().st_mode & 0o777 == 0o700


def test_the_built_in_telegram_is_not_replaced_by_a_file_and_runs_with_our_interpreter(tmp_path, module):
    path = module("telegram.py")
    found = Programs(tmp_path, ON, python="/usr/bin/python3").discover()
    assert (names(found), list(found.errors)) == (["py-telegram"], [path])
    assert found.manifests[0].argv[0] == sys.executable
    assert names(Programs(tmp_path, OFF).discover()) == ["py-telegram"]


def test_an_impossible_name_is_reported(tmp_path, module):
    path = module("my chat.py")
    assert "letters, digits" in Programs(tmp_path, OFF).discover().errors[path]


def test_the_token_is_for_telegram_only(tmp_path):
    found = Programs(tmp_path, ON).surroundings({"PATH": os.defpath, TOKEN: "123:token"})
    assert found.env == {"PATH": os.defpath}
    assert found.withheld == {TOKEN: "123:token", URL: "http://127.0.0.1:9"}
    assert "123:token" not in repr(found)


def test_the_token_comes_from_auth_json(tmp_path):
    (tmp_path / "auth.json").write_text(json.dumps({"telegram": {"api_key": "123:stored"}}))
    (tmp_path / "auth.json").chmod(0o600)
    assert Programs(tmp_path, ON).surroundings({}).withheld[TOKEN] == "123:stored"
    assert TOKEN not in Programs(tmp_path, OFF).surroundings({}).withheld
    (tmp_path / "auth.json").chmod(0o644)
    assert TOKEN not in Programs(tmp_path, ON).surroundings({}).withheld, "others could read it"
