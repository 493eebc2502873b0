"""`zotctl service` where no real manager can be tried: launchd, none at all, and one that nobody can talk to.

The real `systemd --user` is in `tests/service/test_journey.py`.
"""

import json
import os
import plistlib
import sys

import pytest

LAUNCHCTL = """#!/bin/sh
echo "$@" >> {folder}/told
case "$1" in
print) if [ "$2" != "gui/{uid}" ]; then [ -f {folder}/runs ] && echo "	pid = 4711"; fi ;;
bootstrap) touch {folder}/runs ;;
bootout) rm -f {folder}/runs ;;
esac
exit {code}
"""

SYSTEMCTL = """#!/bin/sh
echo "Failed to connect to bus: No medium found" >&2
exit 1
"""


@pytest.fixture
def programs(shell, tmp_path):
    """`programs(name=script)`: the only programs in the shell's PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def have(**scripts):
        for name, script in scripts.items():
            path = folder / name
            path.write_text(script)
            path.chmod(0o755)
        for name in ("touch", "rm"):
            (folder / name).symlink_to(f"/bin/{name}")
        shell.env |= {"PATH": str(folder), "HOME": str(tmp_path)}
        return folder

    return have


def test_service_without_a_manager_is_an_error(shell, programs):
    programs()
    code, out, err = shell.zotctl("service", "install")
    assert (code, out) == (1, "")
    assert err.startswith("zotctl: found neither systemd nor launchd;")
    assert err.count("\n") == 1


def test_service_without_a_user_manager_says_why(shell, programs, tmp_path):
    programs(systemctl=SYSTEMCTL)
    for action in ("install", "uninstall", "status"):
        code, out, err = shell.zotctl("service", action)
        assert (code, out) == (1, "")
        assert (
            "no systemd user manager is running (Failed to connect to bus: No medium found); log in as this user" in err
        )
    assert not (tmp_path / ".config").exists()


def test_launchd_gets_an_agent_with_this_interpreter_and_home(shell, programs, tmp_path):
    folder = programs(launchctl=LAUNCHCTL.format(folder=tmp_path / "bin", uid=os.getuid(), code=0))
    agent = tmp_path / "Library/LaunchAgents/dev.zot.zotd.plist"
    code, out, err = shell.zotctl("service", "install", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["manager"], found["pid"], found["files"]) == ("launchd", 4711, [str(agent)])
    told = plistlib.loads(agent.read_bytes())
    assert told["ProgramArguments"] == [sys.executable, "-P", "-m", "zotd"]
    assert told["EnvironmentVariables"] == {"ZOT_HOME": shell.env["ZOT_HOME"], "ZOTD_SOCKET": shell.path}
    assert f"bootstrap gui/{os.getuid()} {agent}" in (folder / "told").read_text()

    code, out, _ = shell.zotctl("service", "status")
    assert (code, "dev.zot.zotd active" in " ".join(out.split())) == (0, True)
    for _ in range(2):
        assert shell.zotctl("service", "uninstall")[0] == 0
    assert not agent.exists()
    assert shell.zotctl("service", "status")[0] == 1


def test_launchd_without_a_gui_session_is_an_error(shell, programs, tmp_path):
    programs(launchctl=LAUNCHCTL.format(folder=tmp_path / "bin", uid=os.getuid(), code=113))
    code, _, err = shell.zotctl("service", "install")
    assert (code, "launchd has no GUI session for this user" in err) == (1, True)
    assert not (tmp_path / "Library").exists()


def test_reload_says_what_has_changed(live):
    (live.home / "config.toml").write_text("max_steps = 5\n[ext]\ntool_timeout_s = 5\n")
    code, out, err = live.zotctl("reload")
    assert (code, err) == (0, "")
    assert out == "changed: max_steps\ntakes effect after a restart: ext.tool_timeout_s\n"
    code, out, _ = live.zotctl("reload", "--json")
    assert json.loads(out) == {"v": 1, "applied": [], "restart": ["ext.tool_timeout_s"], "warnings": []}
    (live.home / "config.toml").write_text("max_steps = 'many'\n")
    code, out, err = live.zotctl("reload")
    assert (code, out) == (1, "")
    assert "max_steps must be" in err
    assert "the previous configuration stays in effect" in err
