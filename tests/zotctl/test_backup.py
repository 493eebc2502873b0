"""`zotctl backup`, `verify` and `restore`, with and without a running daemon."""

import json
import sqlite3
from contextlib import closing

import pytest


@pytest.fixture
def talk(live):
    """The ID of a session with one exchange."""
    session = live.session(live.model("the purple answer"))
    assert live.zotctl("send", "--session", "tests", "the purple question", "--wait")[0] == 0
    return session


def test_backup_works_while_the_daemon_runs_and_verifies(live, talk):
    copy = live.cwd / "copy.db"
    code, out, err = live.zotctl("backup", "copy.db")
    assert (code, err) == (0, "")
    assert out.startswith("copied all sessions to copy.db (")
    code, out, err = live.zotctl("verify", str(copy))
    assert (code, err) == (0, "")
    assert out.startswith(f"{copy}: 1 session, ")
    assert out.endswith(": no problems found\n")
    assert live.zotctl("backup", "copy.db")[0] == 1
    assert json.loads(live.zotctl("backup", "copy.db", "--force", "--json")[1])["file"] == "copy.db"


def test_the_live_sessions_are_verified_by_default_with_figures_for_programs(live, talk):
    report = json.loads(live.zotctl("verify", "--json")[1])
    assert (report["v"], report["file"], report["problems"]) == (1, str(live.home / "zot.db"), [])
    assert (report["sessions"], report["messages"]) == (1, 2)


def test_verify_reports_damage_with_exit_code_1(live, talk):
    live.zotctl("backup", "copy.db")
    with closing(sqlite3.connect(live.cwd / "copy.db")) as connection, connection:
        connection.execute("DELETE FROM records WHERE number = 2")
    code, out, _ = live.zotctl("verify", "copy.db")
    assert code == 1
    assert f"record 2 of session {talk} cannot be read (it is missing)" in out
    assert out.endswith(" kB: 1 problem\n")


def test_a_restore_requires_a_stopped_daemon_and_restores_the_backup(live, talk):
    live.zotctl("backup", "copy.db")
    with live.connect() as connection:
        epoch = connection.call("daemon.status")["epoch"]
    live.zotctl("send", "--session", "tests", "a yellow question", "--wait")
    code, out, err = live.zotctl("restore", "copy.db")
    assert (code, out) == (1, "")
    assert (
        err == f"zotctl: zotd is already running with pid {live.daemon.pid} in {live.home}; end it with `zotctl stop`\n"
    )

    assert live.zotctl("stop")[0] == 0
    code, out, err = live.zotctl("restore", "copy.db", "--json")
    assert (code, err) == (0, "")
    assert json.loads(live.zotctl("verify", json.loads(out)["before"], "--json")[1])["messages"] == 4
    assert live.zotctl("search", "yellow") == (0, "", "")  # starts the daemon
    assert live.zotctl("search", "purple")[1].count("\n") == 4
    with live.connect() as connection:
        assert connection.call("daemon.status")["epoch"] != epoch
    assert live.zotctl("stop")[0] == 0


def test_a_damaged_copy_is_restored_only_by_force(live, talk):
    live.zotctl("backup", "copy.db")
    with closing(sqlite3.connect(live.cwd / "copy.db")) as connection, connection:
        connection.execute("DELETE FROM records WHERE number = 2")
    live.zotctl("stop")
    code, out, err = live.zotctl("restore", "copy.db")
    assert (code, out) == (1, "")
    assert err.startswith("zotctl: copy.db is damaged: record 2 of session ")
    assert live.zotctl("restore", "copy.db", "--force")[0] == 0


def test_without_a_database_there_is_nothing_to_copy(shell):
    code, out, err = shell.zotctl("backup", "copy.db")
    assert (code, out) == (1, "")
    assert err.startswith("zotctl: the journal ")
    assert not (shell.cwd / "copy.db").exists()
    assert not (shell.home / "zot" / "zot.db").exists()


@pytest.mark.parametrize("command", [("backup", "copy.db"), ("verify",), ("restore", "copy.db")])
def test_sessions_in_postgresql_are_left_to_its_own_programs(shell, command):
    (shell.home / "zot").mkdir(mode=0o700, exist_ok=True)
    (shell.home / "zot" / "config.toml").write_text('[journal]\nurl = "postgresql:///zot"\n')
    code, out, err = shell.zotctl(*command)
    assert (code, out) == (1, "")
    assert err.startswith(
        "zotctl: the sessions are in PostgreSQL ([journal] url): use its own programs, such as pg_dump"
    )
