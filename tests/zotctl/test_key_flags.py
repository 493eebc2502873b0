"""Keys for `zot` that are not on its command line."""

import os
import pty

import pytest

from zotd.key_flags import SHOWN

KEY = "sk-only-in-a-file"

WAIT_S = 40


@pytest.fixture
def file(shell):
    def file(content=f"{KEY}\n", mode=0o600):
        path = shell.home / "key"
        path.write_text(content)
        path.chmod(mode)
        return str(path)

    return file


def given(daemon):
    """The keys that sessions were made with."""
    return [session.params.secrets.api_key for session in daemon.sessions.values()]


def test_a_key_comes_from_a_file_that_only_its_user_can_read(shell, daemon, file):
    assert shell.zot("-p", "hi", "--api-key-file", file()) == (0, "hi\n", "")
    assert given(daemon) == [KEY]


def test_a_key_comes_from_standard_input_when_the_prompt_does_not(shell, daemon):
    assert shell.zot("-p", "hi", "--api-key-file", "-", piped=f"{KEY}\n") == (0, "hi\n", "")
    assert given(daemon) == [KEY]


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [
        (KEY, 0o640, "is open to other users; run `chmod 600"),
        (KEY, 0o602, "is open to other users"),
        ("\n", 0o600, "is empty"),
        (f"{KEY}\nsecond", 0o600, "must contain only a key, which is one word"),
    ],
)
def test_key_file_is_checked_like_a_token_file(shell, daemon, file, content, mode, why):
    path = file(content, mode)
    code, out, err = shell.zot("-p", "hi", "--api-key-file", path)
    assert (code, out, daemon.sessions) == (2, "", {})
    assert f"--api-key-file: the key file {path} {why}" in err
    assert KEY not in err


def test_standard_input_must_hold_exactly_one_key(shell, daemon):
    for piped, why in (
        ("", "standard input is empty"),
        ("a diff\nto review\n", "standard input must contain only a key"),
    ):
        code, _, err = shell.zot("-p", "hi", "--api-key-file", "-", piped=piped)
        assert code == 2
        assert why in err
    code, _, err = shell.zot("rpc", "--api-key-file", "-", piped=KEY)
    assert code == 2
    assert "standard input is used by the protocol; name a file" in err


def test_two_keys_are_bad_usage(shell, daemon, file):
    for command in ([], ["rpc"]):
        code, _, err = shell.zot(*command, "--api-key", "k", "--api-key-file", file())
        assert code == 2
        assert "not allowed with argument --api-key" in err


def test_who_types_a_key_at_a_terminal_is_told_who_can_see_it(shell, daemon):
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        with os.fdopen(theirs, "wb") as stderr:
            process = shell.start("zotd.cli", "-p", "hi", "--api-key", KEY, stderr=stderr)
        out, _ = process.communicate(timeout=WAIT_S)
        said = terminal.read(4096).decode().replace("\r\n", "\n")
    assert (process.returncode, out) == (0, "hi\n")
    assert said.startswith(SHOWN)
    assert KEY not in said
    assert shell.zot("-p", "hi", "--api-key", KEY) == (0, "hi\n", "")  # a program is not told
