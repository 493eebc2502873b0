"""`zotctl usage` and `usage.report`, in a real daemon."""

import json
import os
import pty
import re
import termios
from datetime import datetime

import pytest

from zotd.client.errors import CallError


@pytest.fixture
def talk(live):
    """The ID of a session with one answered prompt."""
    session = live.session(live.model("hello"), model="gpt-4o")
    assert live.zotctl("send", "--session", "tests", "hi", "--wait")[0] == 0
    return session


def test_a_request_is_in_the_sum_of_its_model_with_its_figures(live, talk):
    with live.connect() as connection:
        state = connection.call("get_state", session=talk)
    report = json.loads(live.zotctl("usage", "--json")[1])
    (row,) = report.pop("rows")
    assert report == {"v": 1, "since": None, "by": "model", "budgets": []}
    assert (row.pop("key"), row.pop("name"), row.pop("attempts"), row.pop("unknown")) == ("openai/gpt-4o", "", 1, 0)
    assert row.pop("estimated_usd") == 0
    assert state["usage"].pop("cache_write_hour") == 0  # a part of `cache_write`, which no sum has
    assert row == state["usage"]
    assert row["input"] > 0


def test_usage_prints_budgets_with_the_remaining_amount(live):
    session = live.session(live.model("hello"), model="gpt-4o", budget_usd=3, budget_tokens=1000)
    assert live.zotctl("send", "--session", "tests", "hi", "--wait")[0] == 0
    (state,) = json.loads(live.zotctl("usage", "--json")[1])["budgets"]
    assert (state["scope"], state["session"], state["name"], state["limit_usd"]) == ("session", session, "tests", 3)
    assert state["left_tokens"] == 1000 - state["spent_tokens"] < 1000
    *_, head, money, tokens = live.zotctl("usage")[1].splitlines()
    assert head.split() == ["BUDGET", "SPENT", "LIMIT", "LEFT"]
    assert money.split() == [session, "tests", f"{state['spent_usd']:.4f}", "3.0000", f"{state['left_usd']:.4f}"]
    assert f"{state['spent_tokens']} tokens  1000 tokens  {state['left_tokens']} tokens" in tokens


@pytest.mark.parametrize(("flag", "word"), [("--budget-usd", "0"), ("--budget-usd", "inf"), ("--budget-tokens", "0")])
def test_zero_budget_is_bad_usage(shell, flag, word):
    code, _, err = shell.zot("-p", "hi", flag, word)
    assert (code, "must be" in err) == (2, True)


def test_the_table_has_a_line_for_each_session_or_directory(live, talk):
    by_session = live.zotctl("usage", "--by", "session")[1].splitlines()
    assert by_session[0].split()[-1] == "SESSION"
    assert by_session[1].endswith(f"{talk}  tests")
    assert live.zotctl("usage", "--by", "cwd")[1].splitlines()[1].endswith(str(live.cwd))


def on_a_terminal(live, *arguments, **env):
    """What a command prints on a terminal of 60 columns."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 60))
    live.shell.env.update({"TERM": "xterm-256color", "LANG": "C.UTF-8", **env})
    with live.shell.start("zotctl", *arguments, stdin=theirs, stdout=theirs) as one:
        os.close(theirs)
        one.wait(timeout=40)
    said = b""
    while chunk := _read(ours):
        said += chunk
    os.close(ours)
    return said.decode().replace("\r\n", "\n")


def _read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other side is closed, and all of it was read
        return b""


def test_days_are_drawn_as_bars_on_a_terminal(live, talk):
    said = on_a_terminal(live, "usage")
    (line,) = [line for line in said.splitlines() if "█" in line]
    today = datetime.now().astimezone().date().isoformat()
    assert line.startswith(f"{today}  \x1b[36m█")
    assert len(re.sub(r"\x1b\[\d+m", "", line)) <= 60
    assert "USD" in line


def test_bars_need_neither_colours_nor_block_characters(live, talk):
    (line,) = [line for line in on_a_terminal(live, "usage", NO_COLOR="1").splitlines() if "█" in line]
    assert "\x1b" not in line
    plain = on_a_terminal(live, "usage", TERM="dumb")
    assert "█" not in plain
    assert "##" in plain
    assert "\x1b" not in plain


def test_a_pipe_gets_bars_only_by_day(live, talk):
    assert "█" not in live.zotctl("usage")[1]
    head, row, _, bar = live.zotctl("usage", "--by", "day")[1].splitlines()
    assert head.endswith("DAY")
    assert bar[:10] == row[-10:]
    assert len(bar) <= 80


def test_sessions_without_a_user_are_named_so_in_the_usage(live, talk):
    head, *rows = live.zotctl("usage", "--by", "user")[1].splitlines()
    assert head.endswith("USER")
    assert all(row.endswith("(no user)") for row in rows)
    assert rows


def test_json_by_day_has_rows_and_no_bars(live, talk):
    report = json.loads(live.zotctl("usage", "--by", "day", "--json")[1])
    assert (report["by"], report["rows"][0]["attempts"]) == ("day", 1)


@pytest.mark.parametrize("since", ["1h", "7d", "2w", "2020-01-31", "2020-01-31T08:00", "2020-01-31T08:00:00+02:00"])
def test_a_time_may_be_an_age_a_day_or_a_moment(live, talk, since):
    assert len(live.zotctl("usage", "--since", since)[1].splitlines()) == 2


def test_usage_since_excludes_earlier_requests(live, talk):
    assert len(live.zotctl("usage", "--since", "2999-01-01")[1].splitlines()) == 1
    assert len(live.zotctl("usage", "--since", "0d")[1].splitlines()) == 1


@pytest.mark.parametrize("since", ["soon", "7x", "", "99999999999d", "2026-13-01"])
def test_invalid_time_is_bad_usage_with_examples(shell, since):
    code, out, err = shell.zotctl("usage", "--since", since)
    assert (code, out) == (2, "")
    assert "12h, 7d, 2w, 2026-11-01" in err


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"by": "mood"}, 'usage can be grouped by model, session, cwd, user, day, not by "mood"'),
        ({"since": "2026-11-01"}, '"2026-11-01" is not a time; write it like 2026-11-21T20:11:18Z'),
        ({"since": "2026-11-01T00:00:00"}, '"2026-11-01T00:00:00" is not a time; write it like 2026-11-21T20:11:18Z'),
    ],
)
def test_the_command_wants_a_known_group_and_a_time_with_its_zone(live, fields, sentence):
    with live.connect() as connection, pytest.raises(CallError) as caught:
        connection.call("usage.report", fields)
    assert (caught.value.code, str(caught.value)) == ("bad_request", sentence)
