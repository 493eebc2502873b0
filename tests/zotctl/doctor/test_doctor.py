"""`zotctl doctor`: each problem of its table is produced for real, and found alone and with the right command."""

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.needs import needs
from tests.zotctl.doctor.conftest import KEY
from zotctl.doctor import daemon_checks, runner
from zotctl.doctor.findings import STATES
from zotd.client.blocking import connect
from zotd.client.fields import children
from zotd.template.client import SWITCH
from zotd.testing.live_daemon import ROOT
from zotd.testing.warm import end_serving, once_served

OTHER_VERSION = [sys.executable, "-m", "zotd.testing.skewed", "0.0.1", "1", "1"]


# --- producing each problem: returns the pattern that `next` has to match ------------------------------------------


def stale_socket(patient):
    patient.daemon().end(signal.SIGKILL)
    return "zotctl start"


def listener_lost(patient):
    daemon = patient.daemon()
    Path(daemon.place.socket).unlink()
    return f"kill -USR1 {daemon.pid}"


def wedged(patient):
    daemon = patient.daemon()
    os.kill(daemon.pid, signal.SIGSTOP)
    return f"kill -CONT {daemon.pid}"


def version_mismatch(patient):
    patient.daemon(*OTHER_VERSION)
    return "zotctl restart --when-idle"


def unmanaged(patient):
    patient.daemon()
    patient.service()
    patient.program("loginctl", "echo yes")
    return "zotctl restart --when-idle"


def unreachable(patient):
    run = patient.home / "run"
    run.mkdir(mode=0o700)
    (run / "zotd.sock").write_text("")
    return f"ls -l {run / 'zotd.sock'}"


def gave_up(patient):
    for _ in range(4):
        failing = {**patient.env, "ZOT_LOG_LEVEL": "nonsense"}
        command = [sys.executable, "-m", "zotctl", "ping", "--autostart"]
        assert subprocess.run(command, env=failing, capture_output=True, check=False).returncode == 1
    return "zotctl start"


def socket_directory(patient):
    (patient.home / "run").mkdir(mode=0o755)
    (patient.home / "run").chmod(0o755)
    return f"chmod 700 {patient.home / 'run'}"


def home_not_writable(patient):
    patient.env |= {"ZOT_HOME": "/sys/kernel", "ZOTD_SOCKET": str(patient.folder / "s" / "zotd.sock")}
    return "ls -ld /sys/kernel"


def disk_full(patient):
    patient.prefix = ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh"]
    patient.env["PYTHONDONTWRITEBYTECODE"] = "1"  # it would write half a file, and all others load that
    return f"df -h {patient.home}"


def log_not_writable(patient):
    (patient.home / "logs").write_text("")
    return f"ls -ld {patient.home / 'logs'}"


def config_invalid(patient):
    (patient.home / "config.toml").write_text('log_level = "nonsense"\n')
    return "zotctl config check"


def auth_file(patient):
    file = patient.home / "auth.json"
    file.write_text(json.dumps({"openai": {"api_key": KEY}}))
    file.chmod(0o644)
    return f"chmod 600 {file}"


def cold_start(patient):
    # A socket's path is short.
    run = patient._stack.enter_context(tempfile.TemporaryDirectory(prefix="zt-", dir="/tmp"))
    patient._stack.callback(end_serving, Path(run))
    patient.env |= {SWITCH: "", "XDG_RUNTIME_DIR": run}
    script = "import sys; from zotd.template.client import zotctl; sys.exit(zotctl())"
    command = [sys.executable, "-c", script, "completion", "bash"]
    subprocess.run(command, env=patient.env, check=True, stdout=subprocess.DEVNULL)
    once_served(Path(run), lambda: list(Path(run).glob("zot/template-*.sock")) or None)
    # Then a fork would have rights that this program has given up.
    patient.prefix = [
        sys.executable,
        "-c",
        "import ctypes, os, sys; ctypes.CDLL(None).prctl(38, 1, 0, 0, 0); os.execvp(sys.argv[1], sys.argv[1:])",
    ]
    return "end what the sentence names, or set ZOT_TEMPLATE=off if it must be so"


def no_jail(patient):
    patient.env["GNUPGHOME"] = tempfile.gettempdir()  # hidden, so what lies in it cannot be a working directory
    patient.env["ZOT_APPROVAL_MODE"] = "workspace"
    return "install bubblewrap, or set approval.mode in config.toml to ask, which then says the same"


def extensions_cold(patient):
    tools, hook = patient.home / "extensions" / "tools", patient.folder / "hook"
    tools.mkdir(parents=True)
    hook.mkdir()
    (tools / "good.py").write_text("def run() -> str:\n    'Good.'\n    return ''\n")
    (hook / "sitecustomize.py").write_text(
        "import os, sys\nif any('fork_server' in word for word in sys.orig_argv):\n    os._exit(1)\n"
    )
    daemon = patient.daemon("env", f"PYTHONPATH={hook}:{ROOT}")
    with connect(daemon.place.socket) as connection:
        while not connection.call("daemon.status")["warnings"]:
            os.sched_yield()
    return "zotctl restart --when-idle"


def no_key(patient):
    del patient.env["OPENAI_API_KEY"]
    return "zotctl login anthropic"


def login_file(patient, content="{}", mode=0o644):
    file = patient.home / "logins.json"
    file.write_text(content)
    file.chmod(mode)
    return f"chmod 600 {file}"


def login_ended(patient):
    login_file(patient, json.dumps({"copilot": {"ended": "invalid_grant"}}), 0o600)
    return "zotctl login copilot"


def database_damaged(patient):
    file = patient.database()
    with file.open("r+b") as database:
        database.seek(2 * 4096)
        database.write(b"\x55" * 8 * 4096)
    return "zotctl verify"


def database_newer(patient):
    with sqlite3.connect(patient.database()) as database:
        database.execute("PRAGMA user_version = 9999")
    database.close()
    return "which -a zotd"


def database_unreachable(patient):
    (patient.home / "config.toml").write_text('[journal]\nurl = "postgresql:///zot?host=/nowhere"\n')
    return "psql 'postgresql:///zot?host=/nowhere'"


def linger_off(patient):
    patient.service()
    patient.program("loginctl", "echo no")
    return "loginctl enable-linger"


def extension_failing(patient):
    directory = patient.home / "extensions" / "broken"
    directory.mkdir(parents=True)
    (directory / "extension.json").write_text(json.dumps({"name": "broken", "exec": "nothing-of-that-name"}))
    daemon, cwd = patient.daemon(), str(patient.place.cwd)
    with connect(daemon.place.socket) as connection:
        connection.call("subscribe", topics=["extensions"])
        connection.call("session.create", cwd=cwd, provider="openai", env={}, secrets={"api_key": KEY})
        events = connection.events(20)
        while not connection.call("ext.doctor", cwd=cwd)["findings"]:
            next(events)
    return "zotctl ext logs broken"


def extension_doubtful(patient):
    tools = patient.home / "extensions" / "tools"
    tools.mkdir(parents=True)
    (tools / "odd.py").write_text("def run(x: complex) -> str:\n    'Odd.'\n    return repr(x)\n")
    daemon, cwd = patient.daemon(), str(patient.place.cwd)
    with connect(daemon.place.socket) as connection:
        connection.call("subscribe", topics=["extensions"])
        connection.call("session.create", cwd=cwd, provider="openai", env={}, secrets={"api_key": KEY})
        events = connection.events(20)
        while not (findings := children(connection.call("ext.doctor", cwd=cwd), "findings")):
            next(events)
    assert [one["kind"] for one in findings] == ["doubtful"]
    return f"zotctl ext reload {findings[0]['extension']}, after correcting the type hint"


def code_untrusted(patient):
    tools = patient.place.cwd / ".zot" / "extensions" / "tools"
    tools.mkdir(parents=True)
    (tools / "new.py").write_text("def new() -> str:\n    return 'new'\n")
    patient.daemon()
    return f"zotctl trust grant {patient.place.cwd}"


def port_taken(patient):
    listener = patient._stack.enter_context(socket.socket())
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    (patient.home / "config.toml").write_text(f'[websocket]\nlisten = "127.0.0.1:{listener.getsockname()[1]}"\n')
    patient.daemon()
    return "zotctl restart --when-idle"


def slow_check(patient):
    file = patient.home / "config.toml"
    os.mkfifo(file)  # a file system that does not answer looks like this
    patient._stack.callback(lambda: os.close(os.open(file, os.O_RDWR | os.O_NONBLOCK)))  # nobody waits for ever
    return f"df {patient.home}"


MADE = {
    made.__name__.replace("_", "-"): made
    for made in (
        *(stale_socket, listener_lost, wedged, version_mismatch, unmanaged, unreachable, gave_up, socket_directory),
        *(
            home_not_writable,
            disk_full,
            log_not_writable,
            config_invalid,
            auth_file,
            cold_start,
            no_jail,
            extensions_cold,
        ),
        *(
            no_key,
            login_file,
            login_ended,
            database_damaged,
            database_newer,
            database_unreachable,
            linger_off,
            extension_failing,
        ),
        *(extension_doubtful, code_untrusted, port_taken, slow_check),
    )
}


@pytest.mark.parametrize("state", [state.id for state in STATES])
def test_a_broken_state_is_found_with_the_next_command_and_nothing_else_is(patient, state, capsys, monkeypatch):
    expected = MADE[state](patient)
    monkeypatch.chdir(patient.place.cwd)
    code, said = patient.found(capsys)
    assert (code, said["v"]) == (1, 1)
    assert {one["id"] for one in said["findings"]} == {state}, said
    for one in said["findings"]:
        assert one["next"] == expected
        assert one["text"]
    assert KEY not in json.dumps(said)


def test_the_table_has_every_state_that_is_made_and_at_least_twelve():
    assert list(MADE) == [state.id for state in STATES]
    assert len(STATES) >= 12


def test_the_page_says_what_the_table_says():
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \|.* \| `(.+)` \|$", page.partition("`zotctl doctor` finds")[2], re.MULTILINE)
    assert rows == [(state.id, state.next) for state in STATES]


def test_nothing_is_wrong_with_a_daemon_and_without_one(patient):
    assert patient.said() == (0, ["the daemon is stopped", "no problems found"])
    daemon = patient.daemon()
    assert patient.said() == (0, ["the daemon is running", "no problems found"])
    del patient.env["OPENAI_API_KEY"]  # the daemon's environment has it
    assert patient.examine()[0] == 0
    assert sorted(path.name for path in patient.home.glob("tmp*")) == []
    assert daemon.log.count("error") == 0


def test_an_extension_that_a_person_has_disabled_is_listed_and_is_no_fault(patient):
    directory = patient.home / "extensions" / "resting"
    directory.mkdir(parents=True)
    (directory / "extension.json").write_text(json.dumps({"name": "resting", "exec": "true", "enabled": False}))
    patient.daemon()
    assert patient.said() == (0, ["the daemon is running", "no problems found"])
    command = [sys.executable, "-m", "zotctl", "ext", "doctor"]
    done = subprocess.run(
        command, env=patient.env, cwd=patient.place.cwd, capture_output=True, text=True, check=False, timeout=50
    )
    assert (done.returncode, done.stdout) == (0, f"resting: {directory} is disabled\nno problems found\n"), done.stderr


AS_ANYBODY = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]
"""Runs a command as root without the capability to bypass file permissions."""


def test_a_home_that_may_not_be_entered_is_a_finding_and_no_traceback(patient):
    patient.prefix = AS_ANYBODY if os.geteuid() == 0 else []
    patient.home.chmod(0)
    code, out = patient.examine("--json")
    patient.home.chmod(0o700)
    found = {one["id"]: one["text"] for one in json.loads(out)["findings"]}
    assert code == 1
    assert found["home-not-writable"].endswith("Permission denied")
    assert "slow-check" not in found


def test_home_whose_path_is_not_utf8_is_refused(patient):
    patient.env |= {"ZOT_HOME": os.fsdecode(os.fsencode(patient.folder) + b"/\xff")}
    code, out = patient.examine("--json")
    (found,) = json.loads(out)["findings"]
    assert (code, found["id"]) == (1, "home-not-writable")
    assert found["text"].endswith(r"/\udcff is not UTF-8: choose another place with ZOT_HOME")
    command = [sys.executable, "-m", "zotctl", "start"]
    done = subprocess.run(command, env=patient.env, capture_output=True, text=True, check=False, timeout=50)
    assert (done.returncode, "is not UTF-8" in done.stderr) == (1, True)


def test_people_get_a_sentence_and_below_it_the_command(patient):
    config_invalid(patient)
    code, out = patient.examine()
    assert code == 1
    assert out.splitlines()[1].startswith(f"config-invalid: {patient.home / 'config.toml'}: log_level must be ")
    assert out.splitlines()[2] == "    zotctl config check"


def test_what_looks_like_a_key_is_masked_wherever_it_stands(patient):
    home = patient.folder / KEY
    home.mkdir()
    (home / "config.toml").write_text("log_level = 'loud'\n")
    patient.env |= {"ZOT_HOME": str(home), "ZOTD_SOCKET": str(patient.folder / "s" / "zotd.sock")}
    code, out = patient.examine("--json")
    assert code == 1
    assert KEY not in out
    assert "[hidden]" in out


def test_doctor_takes_less_than_three_seconds_whatever_hangs():
    assert daemon_checks.CONNECT_S + daemon_checks.ANSWER_S < runner.CHECK_S
    assert 2 * runner.CHECK_S + 0.3 <= 3  # and this program's own start


def test_the_jail_is_named_and_what_it_does_not_keep(patient):
    needs("bwrap")
    assert "commands of the model run in a jail of bubblewrap\n" in patient.examine()[1]
    patient.env["PATH"] = "/nowhere"
    code, out = patient.examine()
    assert code == 0
    assert "run in a jail of landlock\n    it lets them connect to sockets that are files" in out
    assert "needs bubblewrap (apt install bubblewrap), and here: bubblewrap (bwrap) is not installed" in out
    jail = json.loads(patient.examine("--json")[1])["jail"]
    assert jail["mechanism"] == "landlock"
    assert "see the names of hidden files" in jail["can_although_it_should_not"]
