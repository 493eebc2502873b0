import json
import os
from contextlib import suppress

import pytest

from zotd.exthost.manifest import DataPlace, Manifest, ManifestError, ProcessScope, ReloadBy, read_manifest
from zotd.wire.sandbox import SandboxRequest


@pytest.fixture
def read(tmp_path):
    """Writes a manifest and reads it; `content` is JSON text or fields beside `name` and `exec`."""

    def read(content=None, **fields):
        text = content if content is not None else json.dumps({"name": "x", "exec": "./x.sh", **fields})
        (tmp_path / "extension.json").write_text(text)
        return read_manifest(tmp_path)

    return read


def test_two_fields_are_enough(read, tmp_path):
    assert read() == Manifest(directory=tmp_path, name="x", argv=(f"{tmp_path}/x.sh",), kept_beside=True)


def test_every_field_is_read(read, tmp_path):
    (tmp_path / "skills").mkdir()
    found = read(
        args=["-v", "a b"],
        version="1.2",
        description="does it",
        language="sh",
        enabled=False,
        skills=["skills", "more/SKILL.md"],
        scope="daemon",
        on_failure={"tool_call": "closed", "turn_start": "open"},
        env=["GITHUB_TOKEN"],
        data="separate",
        reload="replace",
        sandbox={"write": ["~/notes"], "read": ["/etc/x"], "network": ["example.org", "*.example.com:8443"]},
        author="somebody",
    )
    assert found == Manifest(
        directory=tmp_path,
        name="x",
        argv=(f"{tmp_path}/x.sh", "-v", "a b"),
        version="1.2",
        description="does it",
        language="sh",
        is_enabled=False,
        skills=(tmp_path / "skills", tmp_path / "more/SKILL.md"),
        scope=ProcessScope.DAEMON,
        closed=frozenset({"tool_call"}),
        env=("GITHUB_TOKEN",),
        data=DataPlace.SEPARATE,
        kept_beside=False,
        reload=ReloadBy.REPLACE,
        sandbox=SandboxRequest(write=("~/notes",), read=("/etc/x",), network=("example.org", "*.example.com:8443")),
    )


@pytest.mark.parametrize(
    ("exec_", "program"),
    [
        ("python3", "python3"),
        ("/usr/bin/env", "/usr/bin/env"),
        ("./x", "{}/x"),
        ("bin/x", "{}/bin/x"),
        ("../x", "{}/../x"),
    ],
)
def test_a_bare_word_is_looked_up_and_a_path_starts_at_the_manifest(read, tmp_path, exec_, program):
    assert read(exec=exec_).argv == (program.format(tmp_path),)


def test_null_counts_as_absent(read):
    assert read(args=None, on_failure=None, enabled=None) == read()


@pytest.mark.parametrize("name", ["a", "a" * 64, "0.1", "A-b_c.d"])
def test_names(read, name):
    assert read(name=name).name == name


@pytest.mark.parametrize("name", ["", ".", "..", "-a", "a/b", "a b", "a" * 65, "ä", "a\n"])
def test_a_name_is_also_a_file_name(read, name):
    with pytest.raises(ManifestError, match="must have 1 to 64 letters"):
        read(name=name)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"name": None}, "object missing required field `name`"),
        ({"exec": None}, "object missing required field `exec`"),
        ({"exec": ""}, "`exec` is empty; name the program to start"),
        ({"exec": ["x"]}, "expected `str`, got `array` in `exec`"),
        ({"args": "-v"}, "expected `array`, got `str` in `args`"),
        ({"enabled": "no"}, "expected `bool`, got `str` in `enabled`"),
        ({"scope": "host"}, "invalid enum value 'host' in `scope`"),
        ({"reload": "hot"}, "invalid enum value 'hot' in `reload`"),
        ({"data": "/tmp"}, "invalid enum value '/tmp' in `data`"),
        ({"on_failure": "closed"}, "expected `object`, got `str` in `on_failure`"),
        ({"on_failure": {"tool_call": "maybe"}}, "invalid enum value 'maybe' in `on_failure[...]`"),
        (
            {"on_failure": {"tool": "closed"}},
            (
                '`on_failure` names "tool"; the events are user_prompt_submit, before_agent_start, turn_start,'
                " assistant_message, tool_call, tool_result"
            ),
        ),
        ({"sandbox": {"writes": []}}, "object contains unknown field `writes` in `sandbox`"),
        ({"sandbox": {"workspace": "all"}}, "invalid enum value 'all' in `sandbox.workspace`"),
        ({"sandbox": {"write": ["notes"]}}, '`sandbox` names "notes"; a path is absolute or begins with ~/'),
        ({"sandbox": {"read": ["~/"]}}, '`sandbox` names "~/"; a path is absolute or begins with ~/'),
        ({"sandbox": {"network": "all"}}, "invalid enum value 'all' in `sandbox.network`"),
        ({"sandbox": {"network": ["a b"]}}, "`network` of `sandbox`: 'a b': 'a b' is not a name of a host"),
        (
            {"scope": "daemon", "sandbox": {"workspace": "write"}},
            '`workspace` of `sandbox` cannot be "write" with the scope "daemon", which has no workspace',
        ),
        ({"skills": ["../other"]}, 'the skill "../other" is outside of the extension\'s directory'),
        ({"skills": ["/etc"]}, 'the skill "/etc" is outside of the extension\'s directory'),
        ({"transport": "http"}, "`transport` is reserved for later versions; remove it"),
        ({"permissions": None}, "`permissions` is reserved for later versions; remove it"),
    ],
)
def test_a_problem_is_one_sentence(read, tmp_path, fields, sentence):
    with pytest.raises(ManifestError) as caught:
        read(**fields)
    assert str(caught.value) == f"{tmp_path}/extension.json: {sentence}"


def test_a_link_out_of_the_directory_is_an_escape(read, tmp_path):
    (tmp_path / "skills").symlink_to("/")
    with pytest.raises(ManifestError, match="outside"):
        read(skills=["skills"])


@pytest.mark.parametrize("skill", ["loop", "a\0b"])
def test_what_leads_nowhere_breaks_nothing(read, tmp_path, skill):
    (tmp_path / "loop").symlink_to("loop")
    with suppress(ManifestError):
        read(skills=[skill])


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "extension.json")
    with pytest.raises(ManifestError, match="it is not a file"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '"x"', "{}" + " " * 1024 * 1024])
def test_a_value_that_is_no_object_is_no_manifest(read, content):
    with pytest.raises(ManifestError, match=r"extension\.json: "):
        read(content)


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(ManifestError, match=r"extension\.json cannot be read: no such file or directory"):
        read_manifest(tmp_path)
