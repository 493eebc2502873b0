"""`zotctl sandbox` as a real command, in a home that is not the temporary directory."""

import json
import socket
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.jail.conftest import files
from tests.needs import needs
from tests.zotctl.conftest import Shell
from zotctl.sandbox import MECHANISMS, NETWORKS
from zotd.jail import MECHANISMS as HERE
from zotd.jail import Mechanism, Network


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


def test_a_mechanism_of_another_system_is_refused_in_a_sentence(here):
    code, _, err = here.zotctl("sandbox", "try", "--mechanism", "seatbelt", "--", "true")
    assert (code, err.startswith("zotctl: no jail is possible here: /usr/bin/sandbox-exec could not be run")) == (
        1,
        True,
    )


def test_every_mechanism_can_be_chosen():
    assert set(MECHANISMS) == {each.value for each in Mechanism}


@pytest.mark.parametrize("mechanism", HERE)
def test_a_command_is_run_in_the_jail_of_this_directory(here, mechanism):
    needs("bwrap")
    script = "echo x > inside; cat ~/.ssh/id; echo y > ~/outside; exit 4"
    code, out, err = here.zotctl("sandbox", "try", "--mechanism", mechanism, "--", "sh", "-c", script)
    assert (code, out) == (4, "")
    assert err.startswith(f"zotctl: in a jail of {mechanism};")
    assert (here.cwd / "inside").read_text() == "x\n"
    assert not (here.home / "user" / "outside").exists()


def test_every_network_can_be_chosen():
    assert set(NETWORKS) == {each.value for each in Network}


@pytest.mark.parametrize(("network", "reached"), [("proxied", False), ("off", False), ("open", True)])
def test_another_program_is_reached_directly_only_with_an_open_network(here, network, reached):
    needs("bwrap")
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]}"
        code, _, _ = here.zotctl("sandbox", "try", "--network", network, "--", "bash", "-c", script)
    assert (code == 0) == reached


@pytest.fixture
def site(here):
    """The port of a server of this machine that answers with the text `hello`."""
    (here.home / "hello").write_text("hello")
    with files(here.home) as port:
        yield port


def test_an_allowed_host_is_reached_and_others_are_named_at_the_end(here, site):
    needs("bwrap", "curl")
    script = f"for i in 3 4; do curl -sS http://127.0.0.$i:{site}/hello; echo; done"
    code, out, err = here.zotctl("sandbox", "try", "--allow", f"127.0.0.3:{site}", "--", "sh", "-c", script)
    reason = f"127.0.0.4:{site} is a loopback address, and not on the list of allowed hosts"
    assert (code, out.splitlines()) == (0, ["hello", f"zot: {reason}", ""])
    assert f"zotctl: 127.0.0.4:{site} was refused: {reason}\n" in err
    assert "`zotctl sandbox try --allow HOST:PORT` allows a host" in err


def test_the_log_says_what_was_reached_and_refused(here, site):
    needs("bwrap", "curl")
    assert here.zotctl("sandbox", "log", "--json") == (0, "", "")
    script = f"curl -sS http://127.0.0.3:{site}/hello http://127.0.0.4:{site}/hello"
    here.zotctl("sandbox", "try", "--allow", f"127.0.0.3:{site}", "--", "sh", "-c", script)
    _, out, _ = here.zotctl("sandbox", "log", "--json")
    # A request is in the log when it has ended, so the refused one may come first.
    reached, refused = sorted(map(json.loads, out.splitlines()), key=lambda line: str(line["host"]))
    assert (reached["who"], reached["host"], reached["port"]) == ("zotctl", "127.0.0.3", site)
    assert (reached["outcome"], refused["outcome"]) == ("allowed", "refused")
    assert reached["received"] > 0
    _, text, _ = here.zotctl("sandbox", "log", "--refused")
    assert f"127.0.0.4:{site}" in text
    assert "127.0.0.3" not in text
    for who, number in (("zotctl", 2), ("s_1", 0)):
        _, out, _ = here.zotctl("sandbox", "log", "--session", who, "--json")
        assert len(out.splitlines()) == number


def test_hosts_of_the_configuration_are_allowed(here, site):
    needs("bwrap", "curl")
    config = here.home / "user" / "zot" / "config.toml"
    config.parent.mkdir(mode=0o700)
    config.write_text(f'[sandbox]\nhosts = ["127.0.0.0/8:{site}"]\ndefault_hosts = false\n')
    assert here.zotctl("sandbox", "try", "--", "curl", "-sS", f"http://127.0.0.3:{site}/hello")[:2] == (0, "hello")
    _, out, _ = here.zotctl("sandbox", "show", "--json")
    assert json.loads(out)["hosts"] == [f"127.0.0.0/8:{site}"]


def test_a_malformed_host_is_named_before_anything_is_started(here):
    needs("bwrap")
    code, out, err = here.zotctl("sandbox", "try", "--allow", "https://example.org", "--", "touch", "started")
    assert (code, out) == (1, "")
    assert "'https://example.org': write only the host of a URL, such as example.org" in err
    assert not (here.cwd / "started").exists()


def test_a_host_for_an_open_network_is_an_error(here):
    code, _, err = here.zotctl("sandbox", "try", "--network", "open", "--allow", "example.org", "--", "true")
    assert code == 1
    assert "--allow has no effect with --network open" in err


@pytest.mark.parametrize("mechanism", HERE)
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
