import json
import os
import sys

import pytest

from zotd.exthost.mcp import servers


@pytest.fixture
def read(tmp_path):
    """What a file with these `mcpServers` gives; or with this text."""

    def read(content):
        file = tmp_path / "mcp.json"
        file.write_text(content if isinstance(content, str) else json.dumps({"mcpServers": content}))
        manifests, errors = servers(file, directory=tmp_path / "project")
        said = {str(where): sentence.replace(str(file), "FILE") for where, sentence in errors.items()}
        return {manifest.name: manifest for manifest in manifests}, said

    return read


def test_no_file_is_no_server(tmp_path):
    assert servers(tmp_path / "mcp.json", directory=tmp_path) == ([], {})


def test_each_server_is_an_extension_in_the_order_of_the_file(read, tmp_path):
    found, errors = read({"b": {"command": "x"}, "a": {"url": "https://example.org/mcp", "type": "http"}})
    assert (list(found), errors) == (["mcp-b", "mcp-a"], {})
    assert found["mcp-b"].directory == tmp_path / "project"
    assert found["mcp-b"].argv[0] == sys.executable
    assert found["mcp-b"].argv[-4:-2] == (str(tmp_path / "mcp.json"), "b")


def test_a_disabled_server_is_known_and_not_started(read):
    found, _ = read({"a": {"command": "x", "disabled": True}, "b": {"command": "x"}})
    assert {name: one.is_enabled for name, one in found.items()} == {"mcp-a": False, "mcp-b": True}


def test_a_server_may_have_a_time_limit_of_its_own(read):
    found, errors = read(
        {"a": {"command": "x", "timeout_s": 600}, "b": {"command": "x"}, "c": {"command": "x", "timeout_s": 0}}
    )
    assert {name: one.call_limit_s for name, one in found.items()} == {"mcp-a": 600, "mcp-b": None}
    assert "`timeout_s` is not a number of seconds above 0" in errors["c"]


def test_what_the_entry_says_is_not_on_the_command_line(read):
    found, _ = read({"a": {"command": "secret", "args": ["secret"], "env": {"X": "secret"}}})
    assert "secret" not in " ".join(found["mcp-a"].argv)


def test_a_server_gets_the_withheld_variables_that_it_names(read):
    found, _ = read(
        {
            "a": {"command": "${TOOLS}/x", "args": ["--key=${KEY}"], "env": {"A": "${KEY:-none} ${B}", "C": "$D {E}"}},
            "b": {"url": "https://${HOST}", "headers": {"Authorization": "Bearer ${TOKEN}"}},
            "c": {"command": "x", "cwd": "${PLACE:-}"},
        }
    )
    assert {name: set(one.env) for name, one in found.items()} == {
        "mcp-a": {"TOOLS", "KEY", "B"},
        "mcp-b": {"HOST", "TOKEN"},
        "mcp-c": {"PLACE"},
    }


def test_fields_of_other_programs_and_null_are_ignored(read):
    found, errors = read({"a": {"command": "x", "env": None, "url": None, "timeout": 5, "autoApprove": ["y"]}})
    assert (list(found), errors) == (["mcp-a"], {})


@pytest.mark.parametrize(
    ("name", "entry", "fault"),
    [
        ("a", 5, "it is not an object"),
        ("a", {}, "it needs either a `command` to start or a `url`"),
        ("a", {"command": "x", "url": "https://x"}, "it needs either a `command` to start or a `url`"),
        ("a", {"command": "x", "args": "y"}, "expected `array`, got `str` in `args`"),
        ("a", {"command": "x", "env": {"PORT": 80}}, "expected `str`, got `int` in `env[...]`"),
        ("a", {"url": "https://x", "type": "stdio"}, 'its `type` is "stdio", which goes with a `command`'),
        ("a", {"command": "x", "type": "http"}, 'its `type` is "http", which goes with a `url`'),
        ("a", {"url": "https://x", "sandbox": {}}, "its `sandbox` has no effect on a `url`"),
        ("a", {"command": "x", "sandbox": {"network": ["a b"]}}, "`network` of `sandbox`: "),
        ("a", {"url": "https://x", "type": "ws"}, 'its `type` "ws" is neither "stdio" nor "http" nor "sse"'),
        ("a b", {"command": "x"}, 'a name has 1 to 60 letters, digits, ".", "_" and "-"'),
    ],
)
def test_a_wrong_entry_costs_itself_only_and_is_told_in_a_sentence(read, name, entry, fault):
    found, errors = read({name: entry, "good": {"command": "x"}})
    assert list(found) == ["mcp-good"]
    assert list(errors) == [name]
    assert errors[name].startswith(f'FILE: the server "{name}" is not used: {fault}')


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("{", "malformed JSON: Input data was truncated"),
        ("[]", "expected `object`, got `array`"),
        ("{}", "it has no `mcpServers` object"),
        ('{"mcpServers": []}', "it has no `mcpServers` object"),
        ('{"mcpServers": {}}' + " " * 1024 * 1024, "it is over 1 MiB"),
    ],
)
def test_a_wrong_file_is_told_in_a_sentence(read, tmp_path, content, fault):
    assert read(content) == ({}, {str(tmp_path / "mcp.json"): f"FILE: {fault}"})


def test_an_unreadable_file_is_reported(tmp_path):
    pipe = tmp_path / "mcp.json"
    os.mkfifo(pipe)
    assert servers(pipe, directory=tmp_path) == ([], {pipe: f"{pipe}: it is not a file"})
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert servers(loop, directory=tmp_path)[1][loop].startswith(f"{loop} cannot be read: ")
