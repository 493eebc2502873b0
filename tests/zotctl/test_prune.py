"""`zotctl prune`, in a real daemon."""

import json
import sqlite3
from contextlib import closing

import pytest

OLD = "2020-01-01T00:00:00.000Z"


@pytest.fixture
def aged(live):
    """The IDs of two sessions; the first was last used years ago."""
    old, new = live.session(), live.session()
    live.daemon.end()
    with closing(sqlite3.connect(live.home / "zot.db")) as connection, connection:
        connection.execute(
            "UPDATE sessions SET updated = ?, row = json_set(row, '$.updated', ?) WHERE id = ?", (OLD, OLD, old)
        )
    live.daemon.start()
    return old, new


def ids(live):
    return {session["id"] for session in json.loads(live.zotctl("sessions", "--json")[1])["sessions"]}


def test_a_dry_run_lists_old_sessions_and_deletes_nothing(live, aged):
    old, new = aged
    code, out, _ = live.zotctl("prune", "--older-than", "90d", "--dry-run")
    assert code == 0
    assert old in out
    assert new not in out
    assert "1 session would be deleted" in out
    assert ids(live) == {old, new}


def test_prune_deletes_old_sessions_and_reports_sizes(live, aged):
    old, new = aged
    report = json.loads(live.zotctl("prune", "--older-than", "90d", "--yes", "--json")[1])
    assert (report["sessions"], report["in_use"], report["dry_run"]) == ([old], 0, False)
    assert 0 < report["after_bytes"] <= report["before_bytes"]
    assert ids(live) == {new}


def test_prune_without_a_terminal_needs_yes(live, aged):
    code, _, err = live.zotctl("prune", "--older-than", "90d")
    assert code == 1
    assert "--yes" in err
    assert ids(live) == set(aged)


def test_an_old_session_that_a_client_has_open_stays(live, aged):
    old, new = aged
    with live.connect() as connection:
        connection.call("attach", session=old)
        report = json.loads(live.zotctl("prune", "--older-than", "90d", "--yes", "--json")[1])
    assert (report["sessions"], report["in_use"]) == ([], 1)
    assert ids(live) == {old, new}


@pytest.mark.parametrize("word", ["90", "d", "x", "-1d", "99999999999d"])
def test_invalid_age_is_bad_usage(live, word):
    code, _, err = live.zotctl("prune", "--older-than", word)
    assert code == 2
    assert "age" in err or "argument" in err
