"""`zotctl top`: rendering of samples, and the program in a terminal."""

import json
import os
import sys

import pytest

from tests.zottui.tmux import Tmux
from zotctl.top import render
from zotctl.top.sample import Load, Sample

STATUS = {"version": "1.2", "pid": 7, "uptime_s": 3700.0, "clients": 2}


def plain(words, colour):
    return words


def session(name, state="idle", **fields):
    return {
        "id": f"s_{name}",
        "name": name,
        "state": state,
        "model": "gpt",
        "cwd": f"/work/{name}",
        "updated": "2026-11-21T20:11:18.919Z",
        "clients": 0,
        **fields,
    }


def look(at, *sessions, extensions=(), loads=None):
    return Sample(at, STATUS, list(sessions), list(extensions), 1.25, loads or {})


# --- rendering -----------------------------------------------------------------------------------------------


def test_rate_is_measured_from_the_oldest_sample_to_the_newest():
    looks = [look(at, session("a", usage={"output": 100 * at})) for at in (0, 1, 2)]
    assert render.rates(looks) == {"s_a": 100}


def test_subagents_stand_below_the_session_that_has_begun_them():
    parent = session("a", state="waiting")
    below = session("b", state="running", parent={"session": "s_a", "call": "c_1"})
    drawn = render.draw([look(0, session("c"), below, parent)], plain, width=120, height=None)
    names = [line.split()[:2] for line in drawn if "/work/" in line]
    assert names == [["a", "waiting"], ["└", "b"], ["c", "idle"]]


def test_a_reply_that_is_being_written_counts_before_its_tokens_are_known_and_not_again_when_they_are():
    looks = [
        look(0, session("a", usage={"output": 10})),
        look(2, session("a", usage={"output": 10}, writing=800)),
        look(4, session("a", usage={"output": 210}, writing=0)),
    ]
    assert render.rates(looks[:2]) == {"s_a": 100}
    assert render.rates(looks) == {"s_a": 50}


def test_a_session_that_was_cleared_has_no_speed_below_zero():
    assert render.rates([look(0, session("a", usage={"output": 9})), look(1, session("a"))]) == {"s_a": 0}


def test_one_sample_or_a_new_session_has_no_rate():
    assert render.rates([look(0, session("a"))]) == {}
    assert render.rates([look(0), look(1, session("a"))]) == {}


def test_active_sessions_are_listed_first():
    states = ["idle", "running", "waiting", "idle", "blocked"]
    looks = [look(0, *(session(f"n{number}", state) for number, state in enumerate(states)))]
    shown = render.draw(looks, plain, width=200, height=None)
    assert [line.split()[0] for line in shown[4:]] == ["n2", "n1", "n4", "n0", "n3"]
    assert "5 sessions   1 waiting   1 running   1 blocked   2 clients   0 tokens/s   $1.25 today" in shown


def test_rows_that_fit_exactly_are_shown():
    looks = [look(0, session("a"), session("b", failed=True), extensions=[{"name": "e", "state": "ready"}])]
    shown = render.draw(looks, plain, width=200, height=9)
    assert [line.split()[:2] for line in shown[4:6]] == [["b", "failed"], ["a", "idle"]]
    assert shown[1].startswith("2 sessions   1 failed   2 clients")
    assert [line.split()[0] for line in shown[7:]] == ["EXTENSION", "e"]


def test_figures_end_below_each_other():
    looks = [look(0, session("a", clients=9), session("b", clients=12))]
    head, *rows = render.draw(looks, plain, width=200, height=None)[3:]
    assert [row[: head.index("CLIENTS") + 7].split()[-1] for row in rows] == ["9", "12"]


def test_jobs_have_a_column_if_any_runs():
    looks = [look(0, session("a", clients=1, jobs=3), session("b", clients=2))]
    head, *rows = render.draw(looks, plain, width=200, height=None)[3:]
    assert [row[head.index("CLIENTS") : head.index("JOBS") + 4].split() for row in rows] == [["1", "3"], ["2"]]
    assert "JOBS" not in render.draw([look(0, session("a"))], plain, width=200, height=None)[3]


def test_rows_that_do_not_fit_are_counted():
    looks = [look(0, *(session(f"n{number}") for number in range(50)), extensions=[{"name": "e", "state": "ready"}])]
    shown = render.draw(looks, plain, width=60, height=20)
    assert len(shown) <= 20
    assert max(map(len, shown)) <= 60
    listed = sum(line.startswith("n") for line in shown)
    assert f"… {50 - listed} more" in shown
    assert any(line.startswith("e ") for line in shown)


def test_an_extension_has_its_processor_and_memory():
    extensions = [{"name": "weather", "state": "ready", "pid": 9}, {"name": "gone", "state": "parked", "pid": None}]
    looks = [look(0, extensions=extensions, loads={9: Load(12.4, 30 * 2**20)})]
    shown = render.draw(looks, plain, width=200, height=None)
    assert ["weather", "ready", "9", "12%", "31.5", "MB"] in [line.split() for line in shown]
    assert ["gone", "parked"] in [line.split() for line in shown]


def test_names_cannot_steer_the_terminal():
    shown = render.draw([look(0, session("a\x1b]0;x\x07b\x9b31m\u202e"))], plain, width=200, height=None)
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set("".join(shown))


def test_a_line_that_is_cut_ends_its_colour():
    shown = render.draw(
        [look(0, session("a", "running"))], lambda words, _: f"\x1b[1m{words}\x1b[0m", width=12, height=9
    )
    assert all(line.count("\x1b[1m") <= line.count("\x1b[0m") for line in shown)


# --- in a terminal ---------------------------------------------------------------------------------------------------


def test_one_picture_shows_the_session_its_cost_and_the_daemons_memory(live):
    live.write("shouter")
    session = live.session(live.model("a fine answer"), model="gpt-4o")
    live.command(session, "shout", "x")
    assert live.zotctl("send", "--session", "tests", "hi", "--wait")[0] == 0
    code, out, err = live.zotctl("top", "--once", "--delay", "0.2")
    assert (code, err) == (0, "")
    assert "MB" in out.splitlines()[0]
    assert f"pid {live.daemon.pid}" in out
    assert any(line.split()[:3] == ["tests", "idle", "gpt-4o"] for line in out.splitlines())
    (extension,) = [line for line in out.splitlines() if line.startswith("shouter")]
    assert "ready" in extension
    assert "MB" in extension


def test_the_same_as_json(live):
    session = live.session(live.model("a fine answer"))
    assert live.zotctl("send", "--session", "tests", "hi", "--wait")[0] == 0
    code, out, _ = live.zotctl("top", "--once", "--json", "--delay", "0.2")
    found = json.loads(out)
    assert (code, found["v"], found["extensions"]) == (0, 1, [])
    assert found["daemon"]["rss_bytes"] > 10 * 2**20
    assert [(one["id"], one["tokens_per_s"]) for one in found["sessions"]] == [(session, 0)]
    assert found["sessions"][0]["usage"]["output"] > 0


def test_it_does_not_start_the_daemon(shell):
    code, out, err = shell.zotctl("top")
    assert (code, out) == (1, "")
    assert "not running" in err


@pytest.mark.parametrize("delay", ["0", "nan", "inf", "x"])
def test_invalid_delay_is_bad_usage(shell, delay):
    assert shell.zotctl("top", "--delay", delay)[0] == 2


def test_it_is_drawn_again_and_leaves_the_terminal_as_it_was(live, tmp_path):
    live.session()
    command = ["sh", "-c", f"echo before; {sys.executable} -m zotctl top --delay 0.2; echo left $?; stty -a; cat"]
    env = {**live.shell.env, "PATH": os.environ["PATH"]}
    with Tmux(command, folder=tmp_path, env=env) as terminal:
        terminal.wait("tests")
        with live.connect() as connection:
            connection.call("session.create", cwd=str(live.cwd), name="another", provider="openai", keyless=True)
        terminal.wait("another")
        live.daemon.end()
        terminal.wait("zotd is not running; waiting")
        live.daemon.start()
        terminal.wait("another")
        terminal.type("q")
        terminal.wait("left 0")
        terminal.wait("(^| )icanon")
        terminal.wait("^before")
