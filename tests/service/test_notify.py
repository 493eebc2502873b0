"""What a service manager hears from the daemon, over a socket that plays one."""

import json
import os
import signal

import pytest

from zotd.client.blocking import connect
from zotd.client.options import hello


def ask(daemon, command, **params):
    with connect(daemon.place.socket) as connection:
        hello(connection, "test", role="admin")
        return connection.call(command, **params)


@pytest.mark.parametrize("address", ["path", "abstract"], indirect=True)
def test_it_is_ready_when_it_serves_says_what_it_does_and_feeds_the_watchdog(daemon, manager):
    daemon.start()
    said = manager.until("READY=1")
    assert said.index("STATUS=0 sessions, 0 running, 0 clients") < said.index("READY=1")
    manager.until("WATCHDOG=1", count=2)
    ask(daemon, "daemon.status")
    manager.until("STATUS=0 sessions, 0 running, 1 clients")
    manager.until("STATUS=0 sessions, 0 running, 0 clients")
    daemon.end()
    said = manager.until("EXTEND_TIMEOUT_USEC=")
    assert "STOPPING=1" in said


@pytest.mark.parametrize("config", ["log_level = 'debug'\n", "log_level = 'loud'\n"], ids=["good", "bad"])
def test_sighup_reads_the_configuration_again_and_ends_well_either_way(daemon, manager, config):
    daemon.start()
    manager.until("READY=1")
    (daemon.place.home / "config.toml").write_text(config)
    os.kill(daemon.pid, signal.SIGHUP)
    said = manager.until("READY=1")
    assert "RELOADING=1" in said
    assert any(one.startswith("MONOTONIC_USEC=") for one in said)
    warnings = ask(daemon, "daemon.status")["warnings"]
    assert ["log_level" in one for one in warnings] == [True] * ("loud" in config)


def test_what_the_daemon_starts_does_not_hear_of_its_manager(daemon, manager, tmp_path):
    told = tmp_path / "told"
    script = "import json, os, sys; json.dump(dict(os.environ), open(sys.argv[1], 'w'))"
    daemon.place.home.mkdir(mode=0o700)
    (daemon.place.home / "config.toml").write_text(
        f'api_key_command = ["python3", "-c", {json.dumps(script)}, "{told}", "{{provider}}"]\n'
    )
    daemon.start()
    manager.until("READY=1")
    cwd = str(daemon.place.cwd)
    session = ask(daemon, "session.create", cwd=cwd, provider="anthropic", keyless=True)["session"]["id"]
    ask(daemon, "prompt", session=session, message="go")
    manager.until("STATUS=1 sessions, 0 running")
    assert {"NOTIFY_SOCKET", "WATCHDOG_USEC"}.isdisjoint(json.loads(told.read_text()))
