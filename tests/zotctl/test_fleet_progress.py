"""How far a batch is, while `zotctl fleet run` waits for its results."""

import json
import os
import sys

import pytest

from tests.zottui.tmux import Tmux
from zotctl.fleet_progress import LINE_S, BatchTally, Progress

MODEL = {"provider": "ollama", "model": "m"}


def ended(place, state="done", cost_usd=0.0):
    return {"place": place, "state": state, "cost_usd": cost_usd}


def page(left, running=0, ended=0):
    return {"left": left, "running": running, "ended": ended}


# --- in words ------------------------------------------------------------------------------------------------


def test_results_are_counted_by_state_and_their_costs_are_added():
    tally = BatchTally(0)
    for result in (ended(1, cost_usd=0.25), ended(2, "failed", 0.5), ended(3, "unknown"), ended(4)):
        tally.add(result)
    found = tally.parts(page(1996, running=4, ended=4), 10.0)
    assert found == ["2 done", "1 failed", "1 unknown", "4 running", "1,992 waiting", "$0.75", "0s so far"]


def test_the_rest_is_estimated_by_the_results_that_came_meanwhile():
    tally = BatchTally(0)
    for place in range(1, 101):  # they were there before
        tally.add(ended(place))
    assert tally.parts(page(10, ended=100), 5.0)[-1] == "0s so far"
    for place in range(101, 104):
        tally.add(ended(place))
    assert tally.parts(page(7, ended=103), 35.0)[-1] == "about 1m 10s left"  # 10 s each


def test_pages_of_older_results_do_not_count_as_speed():
    tally = BatchTally(0)
    for place in range(1, 10):
        tally.add(ended(place))
        assert tally.parts(page(10, ended=9), float(place))[-1].endswith("so far")


def test_results_that_are_passed_over_are_named():
    tally = BatchTally(250)
    tally.add(ended(251))
    assert tally.parts(page(1, ended=251), 0.0)[:3] == ["250 before", "1 done", "1 waiting"]


def test_without_a_terminal_there_is_a_line_a_minute(capsys):
    time = [0.0]
    progress = Progress("zotctl", clock=lambda: time[0])
    for now in (0.0, LINE_S - 1, LINE_S, LINE_S + 20, 2 * LINE_S):
        time[0] = now
        progress.tell(page(2, running=1))
    assert capsys.readouterr().err == (
        "zotctl: 0 done, 1 running, 1 waiting, 1m 00s so far\nzotctl: 0 done, 1 running, 1 waiting, 2m 00s so far\n"
    )


def test_quiet_tells_nothing(capsys):
    time = [0.0]
    progress = Progress("zotctl", quiet=True, clock=lambda: time[0])
    time[0] = 10 * LINE_S
    progress.tell(page(2))
    assert capsys.readouterr().err == ""


# --- with a daemon -------------------------------------------------------------------------------------------


@pytest.fixture
def terminal(live, tmp_path):
    """`terminal(*flags, columns)`: `zotctl fleet run` of a prompt that is done, one that fails, and one that waits."""
    url = live.model("fine")
    (live.home / "config.toml").write_text(f'[providers.ollama]\nbase_url = "{url}"\n')
    assert live.zotctl("reload")[0] == 0
    prompts: list[dict[str, object]] = [
        {"prompt": "a"},
        {"prompt": "b", "cwd": "missing"},
        {"prompt": "c", "labels": ["nowhere"]},
    ]
    (tmp_path / "prompts.jsonl").write_text("".join(f"{json.dumps(MODEL | prompt)}\n" for prompt in prompts))

    def terminal(*flags, columns=100, **variables):
        command = [sys.executable, "-m", "zotctl", *flags, "fleet", "run", "prompts.jsonl", "--id", "mine"]
        env = {**live.shell.env, "PATH": os.environ["PATH"], **variables}
        # The shell keeps the screen when the program has ended.
        return Tmux(
            ["sh", "-c", f"trap : INT; {' '.join(command)}; echo left $?; cat"],
            folder=tmp_path,
            env=env,
            columns=columns,
        )

    return terminal


def test_on_a_terminal_a_line_is_rewritten_below_the_results(terminal):
    with terminal(columns=400) as window:
        window.wait(r"^zotctl: 1 done, 1 failed, 1 waiting, \d+s so far$")
        assert "\x1b[31m1 failed" in window.screen(colours=True)
        window.wait(r"[1-9]s so far$")
        window.key("C-c")
        window.wait("^left 130")
        lines = window.screen().splitlines()
    assert sorted(json.loads(line)["state"] for line in lines if line.startswith("{")) == ["done", "failed"]
    assert [line for line in lines if "so far" in line] == []
    again = "zotctl: the batch mine goes on; run the same command again to print its results"
    assert any(line.endswith(again) for line in lines)


def test_colours_can_be_switched_off(terminal):
    with terminal("--no-color") as window:
        window.wait(r"1 failed, 1 waiting, \d+s so far$")
        assert "31m" not in window.screen(colours=True)
    with terminal(NO_COLOR="1") as window:
        window.wait(r"1 failed, 1 waiting, \d+s so far$")
        assert "31m" not in window.screen(colours=True)


def test_the_line_is_cut_to_the_width_of_the_terminal(terminal):
    with terminal(columns=25) as window:
        window.wait(r"^zotctl: 1 done, 1 failed$")


def test_results_are_printed_by_the_id_of_their_batch(live):
    prompt = {"number": 3, "message": "a", "cwd": f"{live.cwd}/missing"}
    with live.connect() as connection:
        connection.call("batch.submit", batch="nightly", prompts=[prompt])
    code, out, err = live.zotctl("fleet", "results", "nightly")
    found = json.loads(out)
    assert (code, err, found["line"], found["batch"], found["state"]) == (1, "", 3, "nightly", "failed")
    assert live.zotctl("fleet", "results", "nightly", "--after", "1")[:2] == (0, "")
    assert 'there is no batch "other"' in live.zotctl("fleet", "results", "other")[2]


def test_quiet_leaves_only_results(live):
    (live.shell.cwd / "one.jsonl").write_text('{"prompt": "a", "cwd": "missing"}\n')
    assert live.zotctl("fleet", "run", "one.jsonl", "--quiet")[2] == ""
