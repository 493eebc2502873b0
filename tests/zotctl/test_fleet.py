"""`zotctl fleet` with a daemon whose sessions are in a file; several daemons: tests/e2e/test_attach_anywhere.py."""

import json
from pathlib import Path

from zotd.fleet_key import FILE, FleetKey


def test_a_key_is_made_once_and_only_its_user_can_read_it(live):
    path = Path(live.daemon.place.home) / FILE
    code, out, _ = live.zotctl("fleet", "key", "--json")
    assert (code, json.loads(out)) == (0, {"v": 1, "path": str(path), "made": True})
    assert path.stat().st_mode & 0o777 == 0o600
    FleetKey.read(str(path))
    before = path.read_text()
    assert json.loads(live.zotctl("fleet", "key", "--json")[1])["made"] is False
    assert path.read_text() == before
    path.chmod(0o644)
    code, _, err = live.zotctl("fleet", "key")
    assert code == 1
    assert "chmod 600" in err


def test_a_daemon_with_a_file_has_no_fleet(live):
    assert "they are in a file" in live.zotctl("fleet", "status")[1]
    assert json.loads(live.zotctl("fleet", "status", "--json")[1]) == {"v": 1, "daemons": [], "waiting": []}


def test_a_daemon_with_a_file_is_ready_when_it_answers(live):
    assert live.zotctl("fleet", "ready") == (0, "ready\n", "")
    assert json.loads(live.zotctl("fleet", "ready", "--json")[1]) == {"v": 1, "ready": True}


def test_a_daemon_that_does_not_run_is_not_ready_and_is_not_started(shell):
    code, out, err = shell.zotctl("fleet", "ready")
    assert (code, out) == (1, "")
    assert "is not running" in err
    assert not Path(shell.path).exists()
