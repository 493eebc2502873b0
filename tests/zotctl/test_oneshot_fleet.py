"""`zot -p --fleet` with a daemon whose sessions are in a file; several daemons: tests/e2e/test_fleet_batches.py."""

import json
import os
import signal

import pytest

from tests.zottui.tmux import until

WAITS = {"type": "call", "name": "bash", "args": {"command": "echo x >> ran; read < go; echo y >> ran"}}
"""A command that runs until a test lets it end, and leaves traces."""


@pytest.fixture
def served(live):
    """`served(url)`: have the daemon use this model by default."""

    def served(url):
        vendor = f'[providers.ollama]\nbase_url = "{url}"\n'
        (live.home / "config.toml").write_text(f'provider = "ollama"\nmodel = "m"\n{vendor}')
        assert live.zotctl("reload")[0] == 0

    return served


@pytest.fixture
def busy(live, served):
    """`busy(*flags)`: `zot -p --fleet` whose command runs."""
    served(live.scripted({"steps": [WAITS]}, {"steps": [{"type": "text", "deltas": ["all done"]}]}))
    os.mkfifo(live.shell.cwd / "go")

    def busy(*flags):
        process = live.shell.start("zotd.cli", "-p", "--fleet", "--mode", "yolo", "go", *flags)
        until((live.shell.cwd / "ran").exists, lambda: "the command does not run")
        return process

    return busy


def batches(live):
    return json.loads(live.zotctl("fleet", "batches", "--json")[1])["batches"]


def test_it_prints_the_answer_and_nothing_else(live, served):
    served(live.model("fine"))
    assert live.zot("-p", "--fleet", "review this", piped="a diff\n") == (0, "fine\n", "")
    with live.connect() as connection:
        (session,) = connection.call("session.list")["sessions"]
        messages = connection.call("get_messages", session=session["id"])["messages"]
    assert messages[0]["content"][0]["text"] == "a diff\n\nreview this"
    assert session["cwd"] == str(live.shell.cwd)


def test_as_json_it_is_the_result_of_a_batch(live, served):
    served(live.model("fine"))
    code, out, err = live.zot("--json", "--fleet", "hello", "--model", "other", "--budget-usd", "2")
    found = json.loads(out)
    assert (code, err, found["v"], found["line"], found["state"], found["text"]) == (0, "", 1, 1, "done", "fine")
    assert [one["id"] for one in batches(live)] == [found["batch"]]
    with live.connect() as connection:
        (session,) = connection.call("session.list")["sessions"]
    assert (session["id"], session["model"]) == (found["session"], "other")


@pytest.mark.parametrize(("flags", "looks"), [([], 0), (["--label", "gpu"], 1)])
def test_the_daemons_with_their_sessions_are_counted_only_for_labels(shell, daemon, flags, looks):
    assert shell.zot("-p", "--fleet", "hello", *flags) == (0, "fine\n", "")
    assert [request["type"] for request in daemon.requests].count("fleet.list") == looks


def test_each_call_is_a_prompt_of_its_own(live, served):
    served(live.model("fine"))
    assert [live.zot("-p", "--fleet", "again")[1] for _ in range(2)] == ["fine\n"] * 2
    assert len(batches(live)) == 2


def test_a_prompt_that_failed_is_a_sentence_and_exit_code_1(live):
    code, out, err = live.zot("-p", "--fleet", "a", "--cwd", "missing")
    assert (code, out) == (1, "")
    assert err.startswith(f"zot: {live.shell.cwd}/missing is not a directory")
    code, out, err = live.zot("--json", "--fleet", "a", "--cwd", "missing")
    assert (code, json.loads(out)["state"]) == (1, "failed")
    assert err.startswith(f"zot: {live.shell.cwd}/missing is not a directory")


def test_ctrl_c_cancels_a_prompt_that_waits(live):
    with live.shell.start("zotd.cli", "-p", "--fleet", "a", "--label", "gpu", "--label", "big") as process:
        assert process.stderr.readline() == "zot: no daemon has the labels big, gpu; the prompt waits for one\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=40) == ("", "")
    assert process.returncode == 130
    (batch,) = batches(live)
    assert (batch["cancelled"], batch["waiting"]) == (True, 0)


def test_ctrl_c_aborts_a_prompt_that_runs(live, busy):
    with busy() as process:
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=40) == ("", "")
    assert process.returncode == 130
    (batch,) = batches(live)
    code, out, _ = live.zotctl("fleet", "results", batch["id"])
    assert (code, json.loads(out)["state"]) == (1, "cancelled")
    assert (live.shell.cwd / "ran").read_text() == "x\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_terminated_client_leaves_the_prompt_going_and_says_how_to_get_its_result(live, busy, number):
    with busy() as process:
        process.send_signal(number)
        out, err = process.communicate(timeout=40)
    (batch,) = batches(live)
    assert (process.returncode, out) == (1, "")
    assert err == f"zot: the prompt goes on; to print its result, run: zotctl fleet results {batch['id']}\n"
    (live.shell.cwd / "go").write_text("\n")
    code, out, _ = live.zotctl("fleet", "results", batch["id"])
    assert (code, json.loads(out)["text"]) == (0, "all done")


def test_a_closed_output_leaves_the_prompt_going(live, busy):
    with busy() as process:
        process.stdout.close()
        assert "to print its result, run: zotctl fleet results prompt-" in process.stderr.readline()
        assert process.wait(40) == 1
    (live.shell.cwd / "go").write_text("\n")
    assert live.zotctl("fleet", "results", batches(live)[0]["id"])[0] == 0


def test_a_daemon_that_is_killed_is_reached_again(live):
    with live.shell.start("zotd.cli", "-p", "--fleet", "a", "--label", "gpu") as process:
        assert "the prompt waits for one" in process.stderr.readline()
        live.daemon.end(signal.SIGKILL)
        # The first client that needs a daemon starts it: this one, or that of the next line.
        assert live.zotctl("fleet", "cancel", batches(live)[0]["id"])[0] == 0
        assert process.communicate(timeout=40) == ("", "zot: the batch was cancelled\n")
    assert process.returncode == 1


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["-p", "-c"], "--continue does not go with --fleet; these do: --label, --provider, --model, --mode,"),
        (["-p", "--tools", "read"], "--tools does not go with --fleet"),
        (["-p", "-e", "x"], "--ext does not go with --fleet"),
        (["-p", "--trust"], "--trust does not go with --fleet"),
        (["-p", "-w"], "--worktree does not go with --fleet"),
        (["--list-models"], "--list-models does not go with --fleet"),
        (["-p", "/help"], "--fleet takes a prompt and no slash command"),
        (["-p"], "no prompt; pass one as an argument or on standard input"),
    ],
)
def test_what_does_not_go_with_it_is_bad_usage(shell, flags, sentence):
    code, out, err = shell.zot("--fleet", *flags)
    assert (code, out) == (2, "")
    assert err.startswith(f"zot: {sentence}")


def test_labels_without_a_fleet_are_bad_usage(shell):
    assert shell.zot("-p", "a", "--label", "gpu") == (2, "", "zot: --label is for `zot -p --fleet`\n")


def test_a_chat_is_not_for_a_fleet(shell):
    controller, terminal = os.openpty()
    with shell.start("zotd.cli", "--fleet", "a", stdin=terminal) as process:
        os.close(terminal)
        assert process.communicate(timeout=40)[1] == "zot: --fleet is for a single prompt: add -p or --json\n"
    os.close(controller)
    assert process.returncode == 2
