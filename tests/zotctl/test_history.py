"""`zotctl fork`, `rewind`, `tree`, `export` and `import` against the real daemon."""

import json
import signal
import stat

import pytest

from tests.history import original_files as old
from zotd.client.blocking import connect
from zotd.client.choosing import find
from zotd.client.fields import text

OLD_SESSION = (
    old.meta(),
    old.message("user", old.text("mend the door")),
    old.message("assistant", old.text("it is mended")),
)


def named(live):
    """The id of the session that is called `tests`."""
    with live.connect() as connection:
        return text(find(connection, "tests"), "id")


@pytest.fixture
def talk(live):
    """A session with two prompts; the numbers of its messages."""
    live.session(live.model("an answer"))
    for prompt in ("first", "second"):
        assert live.zotctl("send", "--session", "tests", prompt, "--wait")[0] == 0
    with live.connect() as connection:
        page = connection.call("session.history", session=named(live))
    return [message["seq"] for message in page["messages"]]


def test_rewind_adds_a_branch_to_the_tree(live, talk):
    assert live.zotctl("rewind", "--session", "tests", str(talk[1]))[:2] == (
        0,
        f"{named(live)} continues from message {talk[1]}\n",
    )
    live.zotctl("send", "--session", "tests", "third", "--wait")
    code, out, err = live.zotctl("tree", "--session", "tests", "--messages", "3")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0] == f'{named(live)}  "tests"'
    assert lines[1].startswith("└─ 1-")
    assert '"first"  4 messages' in lines[1]
    assert lines[2].startswith(f"   └─ at {talk[1]}: ")
    assert '"third"  2 messages' in lines[2]
    assert lines[2].endswith("<- current")
    assert lines[3].split(None, 1) == [str(talk[1]), "assistant: an answer"]
    assert lines[4].endswith("user: third")


def test_subagents_are_shown_in_the_tree_with_their_state(live):
    call = {"type": "call", "name": "task", "args": {"prompt": "look", "description": "looks around"}}
    said = [{"steps": [{"type": "text", "deltas": [word]}]} for word in ("fine", "done")]
    live.session(live.scripted({"steps": [call]}, *said))
    assert live.zotctl("send", "--session", "tests", "go", "--wait")[0] == 0
    code, out, err = live.zotctl("tree", "--session", "tests")
    assert (code, err) == (0, "")
    found = json.loads(live.zotctl("tree", "--session", "tests", "--json")[1])["family"]
    assert [one["name"] for one in found] == ["tests", "looks around"]
    assert out.splitlines()[-2:] == ["subagents, <$0.01 in all", f'└ {found[1]["id"]}  "looks around"  idle  <$0.01']


def test_fork_is_named_and_shown_in_the_tree(live, talk):
    code, out, _ = live.zotctl("fork", "--session", "tests", "--at", str(talk[1]), "--name", "branch")
    made = out.split()[0]
    assert (code, out) == (0, f'{made}  "branch", with 2 messages\n')
    assert f'at {talk[1]}: {made}  "branch"' in live.zotctl("tree", "--session", "tests")[1]
    assert f'forked from {named(live)}  "tests", at {talk[1]}' in live.zotctl("tree", "--session", made)[1]
    tree = json.loads(live.zotctl("tree", "--session", "tests", "--json")[1])
    assert (tree["v"], [fork["session"] for fork in tree["forks"]]) == (1, [made])
    forked = json.loads(live.zotctl("fork", "--session", "tests", "--json")[1])
    assert (forked["v"], forked["session"]["name"]) == (1, "tests (fork)")


def test_rewind_to_a_seq_without_a_message_is_an_error(live, talk):
    code, out, err = live.zotctl("rewind", "--session", "tests", "2")
    assert (code, out) == (1, "")
    assert err == "zotctl: no message has the seq 2; `zotctl log --json` shows the messages with theirs\n"


def test_an_export_is_a_private_file_and_the_same_as_on_standard_output(live, talk):
    assert live.zotctl("export", "--session", "tests", "-o", "talk.jsonl") == (0, "", "")
    file = live.shell.cwd / "talk.jsonl"
    assert file.read_text() == live.zotctl("export", "--session", "tests")[1]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text().splitlines()[-1])["type"] == "end"
    assert live.zotctl("export", "--session", "tests", "--format", "markdown", "-o", "/dev/null") == (0, "", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_export_leaves_the_existing_file(shell, daemon, number):
    with connect(shell.path) as connection:
        connection.call("session.create", cwd=str(shell.cwd), name="tests", env={})
    daemon.slow = "session.export"
    (shell.cwd / "talk.jsonl").write_text("as it was")
    with shell.start("zotctl", "export", "--last", "-o", "talk.jsonl") as process:
        daemon.wait_for("session.export")
        process.send_signal(number)
        assert process.wait(40) == 130
    assert [path.name for path in shell.cwd.iterdir()] == ["talk.jsonl"]
    assert (shell.cwd / "talk.jsonl").read_text() == "as it was"


def test_files_of_the_original_are_imported_once(live):
    folder = live.shell.cwd / "sessions" / "deep"
    folder.mkdir(parents=True)
    (folder / "one.jsonl").write_text("".join(OLD_SESSION))
    (folder / "two.jsonl").write_text("nonsense\n")
    (folder / "notes.txt").write_text("no session")
    code, out, err = live.zotctl("import", "sessions")
    made = out.split()[0]
    assert (code, out) == (1, f'{made}  "mend the door": 2 messages  ({folder / "one.jsonl"})\n')
    assert err.startswith(f"{folder / 'two.jsonl'}: nothing was imported: line 1: it cannot be read: JSON is")
    again = json.loads(live.zotctl("import", "sessions/deep/one.jsonl", "--json")[1])
    (file,) = again["files"]
    assert (again["v"], file["session"]["id"], file["known"]) == (1, made, True)
    assert live.zotctl("log", "--session", made)[1].startswith("> mend the door\nit is mended\n")


def test_an_export_comes_back_in_another_directory(live, talk):
    live.zotctl("export", "--session", "tests", "-o", "talk.jsonl")
    (live.shell.cwd / "elsewhere").mkdir()
    code, out, _ = live.zotctl("import", "talk.jsonl", "--cwd", "elsewhere", "--json")
    (file,) = json.loads(out)["files"]
    assert (code, file["session"]["cwd"]) == (0, str(live.shell.cwd / "elsewhere"))
    assert file["session"]["message_count"] == 4


def test_import_without_session_files_fails(live):
    assert live.zotctl("import", ".") == (1, "", "zotctl: no session files found\n")
    assert live.zotctl("import", "x", "--cwd", "none")[2].endswith("/none; create it, or give another with --cwd\n")
