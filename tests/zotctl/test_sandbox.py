"""`zotctl sandbox` as a real command, in a home that is not the temporary directory."""

import json
import socket
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.needs import needs
from tests.zotctl.conftest import Shell
from zotctl.sandbox import MECHANISMS
from zotd.jail import Mechanism


@pytest.fixture
def here():
    with TemporaryDirectory(dir="/var/tmp") as folder:
        root = Path(folder).resolve()
        for name in ("user/.ssh", "tmp"):
            (root / name).mkdir(parents=True)
        (root / "user" / ".ssh" / "id").write_text("the key")
        shell = Shell(root)
        shell.env |= {"HOME": str(root / "user"), "TMPDIR": str(root / "tmp"), "ZOT_HOME": str(root / "user" / "zot")}
        yield shell


def test_every_mechanism_can_be_chosen():
    assert set(MECHANISMS) == {each.value for each in Mechanism}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_command_is_run_in_the_jail_of_this_directory(here, mechanism):
    needs("bwrap")
    script = "echo x > inside; cat ~/.ssh/id; echo y > ~/outside; exit 4"
    code, out, err = here.zotctl("sandbox", "try", "--mechanism", mechanism, "--", "sh", "-c", script)
    assert (code, out) == (4, "")
    assert err.startswith(f"zotctl: in a jail of {mechanism};")
    assert (here.cwd / "inside").read_text() == "x\n"
    assert not (here.home / "user" / "outside").exists()


def test_the_network_is_refused_unless_it_is_asked_for(here):
    needs("bwrap")
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]}"
        assert here.zotctl("sandbox", "try", "--", "bash", "-c", script)[0] != 0
        assert here.zotctl("sandbox", "try", "--network", "--", "bash", "-c", script)[0] == 0


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_policy_is_printed(here, mechanism):
    needs("bwrap")
    code, out, _ = here.zotctl("sandbox", "show", "--mechanism", mechanism, "--json")
    shown = json.loads(out)
    assert code == 0
    assert shown["mechanism"] == mechanism
    assert shown["writable"][0] == str(here.cwd)
    assert str(here.home / "user" / ".ssh") in shown["hidden"]
    _, text, _ = here.zotctl("sandbox", "show", "--mechanism", mechanism)
    assert all(path in text for path in shown["writable"] + shown["hidden"])


def test_in_the_home_directory_it_says_why_there_is_no_jail(here):
    here.cwd = here.home / "user"
    code, _, err = here.zotctl("sandbox", "show")
    assert code == 1
    assert "no jail is possible here: the working directory is your home directory" in err


def test_a_program_that_does_not_exist_is_named(here):
    needs("bwrap")
    code, _, err = here.zotctl("sandbox", "try", "--", "absent")
    assert code == 1
    assert "absent was not found on PATH" in err


def test_a_command_that_is_killed_returns_the_code_of_a_shell(here):
    needs("bwrap")
    assert here.zotctl("sandbox", "try", "--mechanism", "landlock", "--", "sh", "-c", "kill -9 $$")[0] == 137
