"""The connection of commands that wait for the results of a batch; with a real daemon: test_fleet_run.py."""

from zotctl import fleet_results
from zotctl.fleet_results import Link
from zotd.client.blocking import readable


def test_the_time_for_which_a_daemon_may_be_away_begins_when_it_is_lost(shell, daemon, monkeypatch):
    for name in ("ZOTD_SOCKET", "ZOT_HOME"):
        monkeypatch.setenv(name, shell.env[name])
    monkeypatch.setattr(fleet_results, "AWAY_S", 0.0)  # which each call takes longer than
    cuts: list[str] = []
    pauses: list[float] = []

    def wait(descriptor, timeout_s):
        if cuts:
            cuts.pop()
            daemon.wait_for("ping")
            daemon.do(daemon.cut_all)
            daemon.slow = ""
        return readable(descriptor, timeout_s)

    link = Link("zotctl", wait, pauses.append)
    link.connect()
    daemon.slow = "ping"  # it waits, like `batch.results` for the next one
    cuts.append("the call that follows")
    assert link.call("ping")["pong"] is True
    assert len(pauses) == 1
    link.close()
