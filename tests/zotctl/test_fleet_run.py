"""`zotctl fleet run` with a real daemon: files of prompts go in, results come out, and an interruption loses nothing."""

import json
import signal
import sqlite3
from contextlib import closing

import pytest

PROMPTS = [{"prompt": f"task {number}"} for number in range(1, 6)]

MODEL = ("--provider", "ollama", "--model", "m")


def written(live, lines, name="prompts.jsonl"):
    (live.shell.cwd / name).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return name


def served(live, *replies):
    """Have the daemon use a model that answers like this."""
    url = live.model(*replies)
    (live.home / "config.toml").write_text(f'[providers.ollama]\nbase_url = "{url}"\n')
    assert live.zotctl("reload")[0] == 0


def printed(out):
    return [json.loads(line) for line in out.splitlines()]


def test_each_prompt_of_a_file_has_a_line_and_running_it_again_prints_the_same(live):
    served(live, "fine")
    file = written(live, PROMPTS)
    code, out, err = live.zotctl("fleet", "run", file, *MODEL)
    found = printed(out)
    assert (code, err.endswith(": 5 prompts submitted, 0 were stored before\n")) == (0, True), err
    assert sorted(one["line"] for one in found) == [1, 2, 3, 4, 5]
    assert {(one["v"], one["state"], one["text"]) for one in found} == {(1, "done", "fine")}
    again = live.zotctl("fleet", "run", file, *MODEL)
    assert again[:2] == (0, out)
    assert "0 prompts submitted, 5 were stored before" in again[2]
    assert printed(live.zotctl("fleet", "run", file, *MODEL, "--after", "3")[1]) == found[3:]
    with live.connect() as connection:
        assert len(connection.call("session.list")["sessions"]) == 5


def test_an_interrupted_command_leaves_the_batch_and_says_how_to_come_back(live):
    file = written(live, PROMPTS)
    command = ("fleet", "run", file, "--id", "mine", "--label", "nowhere")
    with live.shell.start("zotctl", *command) as process:
        assert process.stderr.readline() == "zotctl: batch mine: 5 prompts submitted, 0 were stored before\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=40)
    assert (process.returncode, out) == (130, "")
    assert err == (
        "zotctl: the batch mine goes on; run the same command again to print its results\n"
        "zotctl: to end it, run: zotctl fleet cancel mine\n"
    )
    (batch,) = json.loads(live.zotctl("fleet", "batches", "--json")[1])["batches"]
    assert (batch["id"], batch["waiting"]) == ("mine", 5)
    found = json.loads(live.zotctl("fleet", "status", "--json")[1])
    assert found["waiting"] == [{"labels": ["nowhere"], "prompts": 5, "daemons": 0}]
    assert live.zotctl("fleet", "status")[1].endswith(
        "\n5 prompts wait for a daemon with the labels nowhere: none has them\n"
    )
    code, out, _ = live.zotctl("fleet", "cancel", "mine")
    assert (code, out) == (0, "cancelled mine: 5 prompts not run; what runs is aborted\n")
    assert "mine (cancelled)" in live.zotctl("fleet", "batches")[1]
    code, out, err = live.zotctl(*command)
    assert (code, out) == (1, "")
    assert "the batch mine was cancelled: use another id" in err


def test_a_prompt_that_was_not_done_is_in_the_exit_code(live):
    file = written(live, [{"prompt": "a", "cwd": "missing"}])
    code, out, _ = live.zotctl("fleet", "run", file)
    (found,) = printed(out)
    assert (code, found["state"]) == (1, "failed")
    assert found["error"].startswith(f"{live.shell.cwd}/missing is not a directory")


def test_another_file_under_the_same_id_is_refused(live):
    written(live, PROMPTS)
    assert live.zotctl("fleet", "run", "prompts.jsonl", "--id", "b", "--label", "x", "--detach")[0] == 0
    written(live, [{"prompt": "another"}])
    code, _, err = live.zotctl("fleet", "run", "prompts.jsonl", "--id", "b", "--label", "x")
    assert (code, "has another prompt 1 already" in err) == (1, True)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", "it is not JSON"),
        ("[]", "it is not a JSON object"),
        ('{"prompts": "a"}', '"prompts" is unknown; a line may have prompt, cwd,'),
        ('{"cwd": "/"}', 'there is no "prompt"'),
        ('{"prompt": 1}', '"prompt" is not a string'),
        ('{"prompt": "a", "labels": [1]}', '"labels" is not a list of strings'),
        ('{"prompt": "a", "retries": true}', '"retries" is not an integer'),
    ],
)
def test_a_wrong_line_is_named_and_nothing_is_submitted(live, line, sentence):
    (live.shell.cwd / "odd.jsonl").write_text(f'{{"prompt": "a"}}\n\n{line}\n')
    code, out, err = live.zotctl("fleet", "run", "odd.jsonl")
    assert (code, out) == (1, "")
    assert err.startswith(f"zotctl: odd.jsonl, line 3: {sentence}")
    assert live.zotctl("fleet", "batches")[1] == "no batches; `zotctl fleet run FILE` submits one\n"


def test_a_file_without_prompts_and_one_that_is_missing_are_refused(live):
    assert "has no prompts" in live.zotctl("fleet", "run", "-", piped="\n")[2]
    assert live.zotctl("fleet", "run", "none")[2] == "zotctl: none cannot be read: no such file or directory\n"


def test_of_very_many_batches_the_newest_are_listed(live):
    assert live.zotctl("fleet", "batches")[0] == 0  # the database is there
    rows = [(f"prompt-{number:05}", f"2026-11-01T00:00:00.{number % 1000:03}Z") for number in range(1001)]
    with closing(sqlite3.connect(live.home / "zot.db")) as database, database:
        database.executemany("INSERT INTO batches (id, submitter, priority, made) VALUES (?, 'me', 0, ?)", rows)
    code, out, _ = live.zotctl("fleet", "batches")
    assert (code, len(out.splitlines())) == (0, 1002)
    assert out.endswith("\nolder ones are left out; these are the newest 1,000\n")
