"""`zotctl fleet top`: rendering of samples, and the program in a terminal; several daemons: tests/e2e/test_fleet_top.py."""

import json
import os
import sys

import pytest

from tests.zottui.tmux import Tmux
from zotctl import fleet_top, top
from zotctl.main import parser
from zotctl.top.fleet import FleetSample, draw


def plain(words, colour):
    return words


def daemon(name, state="running", **fields):
    return {"name": name, "state": state, "address": "", "sessions": 0, "running": 0, "labels": [], **fields}


def batch(name, *, waiting=0, running=0, ended=0):
    numbers = {"waiting": waiting, "running": running, "ended": ended}
    return {"id": name, "submitter": "ann", "priority": 0, "cancelled": False, **numbers}


def drawn(daemons=(), batches=(), waiting=(), *, width=200, height=None):
    return draw([FleetSample(daemons, waiting, batches)], plain, width=width, height=height)


def test_daemons_are_shown_with_their_leases_and_prompts_and_batches_with_their_progress():
    one = daemon("box1", sessions=12, running=3, prompts=2, lease_s=7.6, is_this=True, labels=["gpu"])
    two = daemon("box2", "expired", sessions=1, lease_s=-3.0, address="wss://box2:7777")
    shown = drawn([one, two], [batch("nightly", waiting=70, running=2, ended=28)])
    assert shown[0] == ("2 daemons   1 expired   13 sessions   3 running   prompts of batches: 2 running, 70 waiting")
    rows = [line.split() for line in shown]
    assert ["box1", "(this", "one)", "running", "8s", "12", "3", "2", "none", "gpu"] in rows
    assert ["box2", "expired", "1", "0", "0", "wss://box2:7777"] in rows
    assert ["nightly", "ann", "0", "28%", "of", "100", "2", "70", "28"] in rows


def test_what_does_not_fit_is_counted_and_neither_table_takes_all_lines():
    daemons = [daemon(f"box{n}") for n in range(30)]
    batches = [batch(f"b{n}", waiting=1) for n in range(30)]
    shown = drawn(daemons, batches, height=20, width=60)
    assert len(shown) <= 20
    assert max(map(len, shown)) <= 60
    for name, every in (("box", daemons), ("b", batches)):
        listed = sum(line.split(maxsplit=1)[0].rstrip("0123456789") == name for line in shown if line)
        assert listed > 3
        assert f"… {len(every) - listed} more" in shown
    assert len(drawn(daemons[:2], batches, height=20)) == 20


@pytest.mark.parametrize("height", range(1, 12))
def test_a_low_terminal_is_no_error(height):
    assert len(drawn([daemon("a")] * 3, [batch("b", waiting=1)] * 3, height=height)) <= height


def test_names_cannot_steer_the_terminal():
    shown = drawn([daemon("a\x1b]0;x\x07b\x9b31m")], [batch("a\x1b]0;x\x07", waiting=1)])
    assert not {"\x1b", "\x07", "\x9b"} & set("".join(shown))


# --- with a daemon -------------------------------------------------------------------------------------------


@pytest.fixture
def waiting(live):
    """A batch whose prompt waits."""
    prompt = {"number": 1, "message": "a", "cwd": str(live.cwd), "labels": ["nowhere"]}
    with live.connect() as connection:
        connection.call("batch.submit", batch="nightly", prompts=[prompt])


def test_without_a_terminal_it_is_printed_once(live, waiting):
    code, out, err = live.zotctl("fleet", "top", "--delay", "0.2")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "prompts of batches: 0 running, 1 waiting"
    assert lines[2].startswith("no other daemon can use these sessions")
    assert "1 prompt waits for a daemon with the labels nowhere: none has them" in lines
    assert lines[-1].startswith("nightly ")
    assert lines[-1].split()[-7:] == ["0", "0%", "of", "1", "0", "1", "0"]


def test_the_same_as_json(live, waiting):
    found = json.loads(live.zotctl("fleet", "top", "--json", "--once", "--delay", "0.2")[1])
    assert (found["v"], found["daemons"], [one["id"] for one in found["batches"]]) == (1, [], ["nightly"])


def test_it_is_updated_less_often_than_one_daemon_because_it_counts_all_sessions(shell):
    assert "seconds between updates (5)" in shell.zotctl("fleet", "top", "--help")[1]
    assert "seconds between updates (1)" in shell.zotctl("top", "--help")[1]
    assert parser().parse_args(["fleet", "top"]).delay == fleet_top.DELAY_S > top.DELAY_S


def test_it_does_not_start_the_daemon(shell):
    code, out, err = shell.zotctl("fleet", "top")
    assert (code, out) == (1, "")
    assert "not running" in err
    assert shell.zotctl("fleet", "top", "--delay", "0")[0] == 2


def test_it_is_drawn_again_and_leaves_the_terminal_as_it_was(live, waiting, tmp_path):
    program = f"{sys.executable} -m zotctl fleet top --delay 0.2"
    command = ["sh", "-c", f"echo before; {program}; echo left $?; stty -a; cat"]
    env = {**live.shell.env, "PATH": os.environ["PATH"]}
    with Tmux(command, folder=tmp_path, env=env) as terminal:
        terminal.wait("^nightly .* 0% of 1 ")
        with live.connect() as connection:
            connection.call("batch.cancel", batch="nightly")
        terminal.wait("^prompts of batches: 0 running, 0 waiting")
        live.daemon.end()
        terminal.wait("zotd is not running; waiting")
        live.daemon.start()
        terminal.wait("^prompts of batches: 0 running, 0 waiting")
        terminal.type("q")
        terminal.wait("left 0")
        terminal.wait("(^| )icanon")
        terminal.wait("^before")
