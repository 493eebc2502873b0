"""`zotctl rename`, `abort`, `move` and `delete`, and the errors of commands, with the real daemon."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from tests.zottui.tmux import Tmux


def listed(live):
    return json.loads(live.zotctl("sessions", "--json")[1])["sessions"]


def test_a_session_is_renamed_and_found_by_its_new_name(live):
    session = live.session()
    assert live.zotctl("rename", "tests", "other") == (0, f"renamed {session}\n", "")
    assert [one["name"] for one in listed(live)] == ["other"]
    assert json.loads(live.zotctl("rename", "other", "third", "--json")[1]) == {
        "v": 1,
        "session": session,
        "done": "renamed",
        "name": "third",
    }


def test_abort_ends_the_active_run(live):
    session = live.session(live.scripted({"steps": [{"type": "hang"}]}))
    with live.connect() as connection:
        connection.call("attach", session=session)
        connection.call("prompt", session=session, message="go")
        assert live.zotctl("abort", "tests") == (0, f"aborted {session}\n", "")
        events = connection.events(20)
        assert next(event for event in events if event["type"] == "turn_end")["stop"] == "aborted"


def test_a_session_is_not_moved_without_another_daemon(live):
    live.session()
    assert live.zotctl("move", "tests") == (
        1,
        "",
        "zotctl: no other daemon has the same journal, so none could go on with the session\n",
    )


def test_delete_asks_for_confirmation(live, tmp_path):
    session = live.session()
    code, out, err = live.zotctl("delete", "tests")
    assert (code, out) == (1, "")
    assert err == (
        f"zotctl: cannot ask for confirmation without a terminal; to delete the session, run: zotctl delete {session} --yes\n"
    )
    command = [sys.executable, "-m", "zotctl", "delete", "tests"]
    for answer, left in (("n", [session]), ("y", [])):
        with Tmux(command, folder=tmp_path, env=live.shell.env) as terminal:
            terminal.wait("delete it permanently")
            terminal.type(f"{answer}\n")
            terminal.wait("was not deleted" if left else "deleted s_")
        assert [one["id"] for one in listed(live)] == left
    again = live.session()
    assert live.zotctl("delete", again, "--yes") == (0, f"deleted {again}\n", "")


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["rename", "nobody", "x"], "refused", "there is no session nobody; `zotctl sessions` lists them"),
        (["rename", "s_nobody", "x"], "refused", "there is no session s_nobody; `zotctl sessions` lists them"),
        (["ext", "logs", "nobody"], "not_found", "there is no extension nobody and no log with that name"),
        (["delete", "tests"], "refused", None),
        (["rename", "tests", " "], "bad_request", "a name has 1 to 200 characters"),
    ],
)
def test_errors_are_json_of_one_shape(live, args, code, sentence):
    live.session()
    exit_code, out, err = live.zotctl(*args, "--json")
    error = json.loads(out)
    assert (exit_code, error.keys(), error["v"], error["code"]) == (1, {"v", "error", "code"}, 1, code)
    assert sentence in {None, error["error"]}
    assert err == f"zotctl: {error['error']}\n"


def test_without_a_daemon_the_error_is_json_too(shell):
    code, out, _ = shell.zotctl("metrics", "--json")
    assert (code, json.loads(out)["code"]) == (1, "not_running")


@pytest.mark.parametrize("word", ["-1", "0", "many"])
def test_a_limit_below_one_is_refused(shell, word):
    code, out, err = shell.zotctl("sessions", "--limit", word)
    assert (code, out) == (2, "")
    assert err.endswith("error: argument --limit: must be at least 1\n")


@pytest.mark.parametrize(
    ("module", "args"),
    [
        ("zotctl", ["sessions", "--json"]),
        ("zotctl", ["status", "--json"]),
        ("zotctl", ["completion", "bash"]),
        ("zotd.cli", ["--list-models"]),
    ],
)
def test_output_that_cannot_be_written_ends_with_a_sentence(live, module, args):
    program = "zot" if module == "zotd.cli" else "zotctl"
    with pathlib.Path("/dev/full").open("w") as full, live.shell.start(module, *args, stdout=full) as process:
        _, err = process.communicate(timeout=40)
    assert (process.returncode, err) == (1, f"{program}: standard output: no space left on device\n")
    read, write = os.pipe()
    os.close(read)
    with live.shell.start(module, *args, stdout=write) as process:
        os.close(write)
        _, err = process.communicate(timeout=40)
    assert (process.returncode, err) == (1, "")
    closed = f'"{sys.executable}" -m {module} {" ".join(args)} >&-'
    done = subprocess.run(["sh", "-c", closed], env=live.shell.env, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


def test_list_models_lists_those_of_one_provider(live):
    code, out, _ = live.zot("--list-models", "--provider", "anthropic")
    assert code == 0
    assert {line.split()[0] for line in out.splitlines()[1:]} == {"anthropic"}
    code, _, err = live.zot("--list-models", "--provider", "nobody")
    assert code == 1
    assert err.startswith('zot: no models of provider "nobody"; available providers: anthropic, ')


def test_help_of_acp_lists_the_flags_of_another_machine(shell):
    code, out, _ = shell.zot("acp", "--help")
    assert code == 0
    assert "--host HOST" in out


def test_a_rewind_names_a_command_that_can_be_typed(live):
    live.session()
    code, _, err = live.zotctl("rewind", "--last", "7")
    assert (code, err) == (1, "zotctl: no message has the seq 7; `zotctl log --json` shows the messages with theirs\n")
