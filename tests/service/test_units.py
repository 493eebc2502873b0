"""The units, as they are shipped and as they are installed."""

import os
import plistlib
import subprocess
from pathlib import Path

import pytest

import zotd
from tests.needs import needs
from zotctl.service import launchd, systemd

UNITS = Path(zotd.__file__).parent.parent / "systemd"

PLIST_KEYS = {
    "Label": str,
    "ProgramArguments": list,
    "EnvironmentVariables": dict,
    "RunAtLoad": bool,
    "KeepAlive": dict,
    "ThrottleInterval": int,
    "ExitTimeOut": int,
    "AbandonProcessGroup": bool,
    "ProcessType": str,
    "SoftResourceLimits": dict,
    "WorkingDirectory": str,
}
"""Keys of `launchd.plist(5)` that we use, with their types; launchd ignores what it does not know."""

ODD = {"ZOT_HOME": '/srv/ann/50 % of "it"', "ZOTD_SOCKET": "/tmp/$HOME/é.sock"}


@pytest.fixture
def verify(tmp_path):
    """What `systemd-analyze verify` says about these units."""
    needs("systemd-analyze")
    program = tmp_path / ".local/bin/zotd"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    units = tmp_path / "units"
    units.mkdir()
    env = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path), "PATH": os.environ["PATH"]}

    def run(service, listener):
        (units / "zotd.service").write_text(service)
        (units / "zotd.socket").write_text(listener)
        command = ["systemd-analyze", "--user", "verify", units / "zotd.service", units / "zotd.socket"]
        done = subprocess.run(command, env=env, capture_output=True, check=False, text=True)
        return done.returncode, done.stdout + done.stderr

    return run


def shipped(name):
    return (UNITS / name).read_text(encoding="utf-8")


def test_the_units_are_what_systemd_understands(verify):
    assert verify(shipped("zotd.service"), shipped("zotd.socket")) == (0, "")
    assert verify(systemd.service(ODD), systemd.listener(ODD["ZOTD_SOCKET"])) == (0, "")
    spoilt = shipped("zotd.service").replace("Type=notify", "Type=sometimes")
    assert "sometimes" in verify(spoilt, shipped("zotd.socket"))[1]


def test_an_installed_unit_differs_in_its_program_and_its_places_only():
    lines = systemd.service(ODD, "/srv/my python").splitlines()
    assert set(shipped("zotd.service").splitlines()) - set(lines) == {"ExecStart=%h/.local/bin/zotd"}
    assert set(lines) - set(shipped("zotd.service").splitlines()) == {
        'ExecStart="/srv/my python" -P -m zotd',
        'Environment="ZOT_HOME=/srv/ann/50 %% of \\"it\\""',
        'Environment="ZOTD_SOCKET=/tmp/$HOME/é.sock"',
    }


def test_the_socket_is_where_clients_look():
    usual = systemd.listener("/run/user/7/zot/zotd.sock", {"XDG_RUNTIME_DIR": "/run/user/7"})
    assert usual == shipped("zotd.socket")
    assert "ListenStream=/h/50%%/run/zotd.sock\n" in systemd.listener("/h/50%/run/zotd.sock", {})


def test_the_agent_of_launchd_has_only_keys_that_launchd_knows():
    found = plistlib.loads(launchd.agent(ODD, "/srv/my python"))
    assert {name: type(value) for name, value in found.items()} == PLIST_KEYS
    assert found["ProgramArguments"] == ["/srv/my python", "-P", "-m", "zotd"]
    assert found["EnvironmentVariables"] == ODD
    assert found["KeepAlive"] == {"SuccessfulExit": False}
    before = plistlib.loads(shipped("dev.zot.zotd.plist").encode())
    assert {**before, "ProgramArguments": 0, "EnvironmentVariables": 0} == {
        **found,
        "ProgramArguments": 0,
        "EnvironmentVariables": 0,
    }
