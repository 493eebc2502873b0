"""The installed commands, which start a template process and become its forks."""

import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from zotd.process import heritage
from zotd.template import client, thin
from zotd.testing.warm import end_serving, once_served, serving
from zotd.wire.version import VERSION

ROOT = Path(__file__).parents[2]
LIMIT_S = 50
PATIENCE_S = 30
"""How long a command here waits to be accepted: one that turned to a cold start on a busy machine would show nothing."""
KEY = "sk-not-for-the-template"


class Place:
    """A user with a home of their own, who has the commands installed."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.work = self.folder / "work"
        self.work.mkdir()
        self.run = self.folder / "run"
        self.run.mkdir(mode=0o700)
        self.env = {
            "HOME": str(self.folder),
            "ZOT_HOME": str(self.folder / "zot"),
            "XDG_RUNTIME_DIR": str(self.run),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "ANTHROPIC_API_KEY": KEY,
        }

    def command(self, name, *arguments, patience_s=PATIENCE_S):
        """As the scripts do that an installer makes."""
        script = (
            f"import sys; from zotd.template import thin; from zotd.template.client import {name}; "
            f"thin.START_S = {patience_s}; sys.exit({name}())"
        )
        return [sys.executable, "-c", script, *arguments]

    def ran(self, name, *arguments, wrapper=(), patience_s=PATIENCE_S, **variables):
        """Run a command to its end; return its exit code and output."""
        done = subprocess.run(
            [*wrapper, *self.command(name, *arguments, patience_s=patience_s)],
            env=self.env | variables,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    @contextmanager
    def session(self, **variables):
        """`zot rpc`, which stays until the end of its input; yields it when it has answered."""
        with subprocess.Popen(
            self.command("zot", "rpc", "--provider", "anthropic"),
            env=self.env | variables,
            cwd=self.work,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            try:
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write(b'{"type":"ping","id":"1"}\n')
                process.stdin.flush()
                assert b'"pong":true' in process.stdout.readline()
                yield process
            finally:
                process.kill()

    @property
    def sockets(self):
        return list(self.run.glob("zot/template-*.sock"))

    def template(self):
        """Wait until the template process serves; return its pid."""
        with once_served(self.run, self._connection) as connection:
            found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return struct.unpack("3i", found)[0]

    def _connection(self):
        with suppress(IndexError, ConnectionRefusedError):  # none yet, or one that was killed has left it
            return connected(self.sockets[0])
        return None

    def forks(self, pid):
        """Programs that the template process runs now; of a client that has just left, one may be there for a moment."""
        return [child.pid for child in psutil.Process(pid).children() if child.name() != "zotd.template"]


def connected(path):
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(LIMIT_S)
        connection.connect(str(path))
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def living():
    with tempfile.TemporaryDirectory(prefix="zt-", dir="/tmp") as folder:
        made = Place(folder)
        try:
            yield made
        finally:
            end_serving(made.run)


def warmed(place):
    """Use a command for the first time; return the pid of the template process."""
    assert place.ran("zotctl", "completion", "bash")[0] == 0
    return place.template()


@pytest.fixture
def place():
    with living() as made:
        yield made


@pytest.fixture
def warm(place):
    """A user who has used a command before: the pid of the template process."""
    return warmed(place)


@pytest.fixture(scope="module")
def used():
    """The same, for tests that leave the template process as it was: the user, and the pid."""
    with living() as made:
        yield made, warmed(made)


def test_the_first_command_starts_a_template_process_and_the_next_ones_are_its_forks(place):
    cold = place.ran("zotctl", "completion", "bash")
    pid = place.template()
    assert place.ran("zotctl", "completion", "bash") == cold
    with place.session() as process:
        assert len(place.forks(pid)) == 1
        process.stdin.close()
        assert process.wait(LIMIT_S) == 0


def test_the_version_is_shown_without_a_template_process(place):
    assert place.ran("zotctl", "--version") == (0, f"zotctl {VERSION}\n", "")
    assert place.ran("zot", "-v") == (0, f"zot {VERSION}\n", "")
    assert place.ran("zottui", "-v") == (0, f"zot {VERSION}\n", "")
    assert place.ran("zotctl", "--help")[0] == 0
    assert not place.sockets


def test_a_version_that_cannot_be_written_is_an_error(place):
    with Path("/dev/full").open("wb") as full:
        command = place.command("zotctl", "--version")
        assert subprocess.run(command, env=place.env, stdout=full, stderr=subprocess.DEVNULL, check=False).returncode


@pytest.mark.parametrize("variables", [{client.SWITCH: "off"}, {heritage.ORIGIN: "0123456789abcdef"}])
def test_no_template_process_is_started_or_used(used, variables):
    place, warm = used
    with place.session(**variables):
        assert place.forks(warm) == []
    assert len(place.sockets) == 1


def test_the_thin_client_knows_the_variable_of_a_daemon_s_descendants():
    assert thin.ORIGIN == heritage.ORIGIN


def test_a_template_process_that_a_descendant_of_a_daemon_has_started_ends(place):
    """Its forks would seem to be the user's own programs, which may approve."""
    daemon = place.folder / "zotd"
    daemon.write_text('import subprocess, sys\nsys.exit(subprocess.run(["env", "-i", *sys.argv[1:]]).returncode)\n')
    variables = [f"{name}={value}" for name, value in place.env.items()]
    assert place.ran("zotctl", "completion", "bash", wrapper=[sys.executable, daemon, *variables])[0] == 0
    assert list(place.run.glob("zot/template-*.lock"))
    _, alive = psutil.wait_procs(serving(place.run), timeout=LIMIT_S)
    assert not alive
    assert not place.sockets


def test_other_variables_of_the_interpreter_get_another_template_process(place, warm):
    assert place.ran("zotctl", "completion", "bash", PYTHONDEVMODE="0")[0] == 0
    assert once_served(place.run, lambda: len(place.sockets) == 2 or None)


def test_twenty_first_commands_at_once_start_one_template_process(place):
    with subprocess.Popen(["sleep", "1000"]) as marker:  # all of them are children of this process
        commands = [
            subprocess.Popen(place.command("zotctl", "completion", "bash"), env=place.env, stdout=subprocess.DEVNULL)
            for _ in range(20)
        ]
        assert [command.wait(LIMIT_S) for command in commands] == [0] * 20
        marker.kill()
    pid = place.template()
    late = [process for process in serving(place.run) if process.pid != pid]  # these see that they are
    _, alive = psutil.wait_procs(late, timeout=LIMIT_S)
    assert not alive


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_after_the_template_process_has_ended_the_next_command_starts_another(place, warm, number):
    os.kill(warm, number)
    psutil.wait_procs([psutil.Process(warm)], timeout=LIMIT_S)
    assert place.ran("zotctl", "completion", "bash")[0] == 0
    assert place.template() != warm


def test_a_stopped_template_process_holds_no_pipe_of_a_command(place, warm):
    """Who reads the output to its end would wait for ever."""
    os.kill(warm, signal.SIGSTOP)
    assert place.ran("zotctl", "completion", "bash", patience_s=thin.START_S)[0] == 0


def test_the_environment_of_a_template_process_has_no_keys(used):
    _, warm = used
    variables = Path(f"/proc/{warm}/environ").read_bytes()
    assert KEY.encode() not in variables
    assert Path(f"/proc/{warm}/cwd").readlink() == Path("/")


def test_a_directory_that_others_may_enter_has_no_template_process(place):
    (place.run / "zot").mkdir(mode=0o755)
    (place.run / "zot").chmod(0o755)
    assert place.ran("zotctl", "completion", "bash")[0] == 0
    assert not place.sockets


def test_a_directory_with_a_long_name_has_no_template_process(place):
    long = place.run / ("x" * 90)
    long.mkdir(mode=0o700)
    assert place.ran("zotctl", "completion", "bash", XDG_RUNTIME_DIR=str(long))[0] == 0
    assert not list(long.glob("**/*.sock"))


def test_a_refused_program_can_ask_why(used):
    place, _ = used
    script = "import sys; from zotd.template import thin; sys.stdout.write(thin.refusal(sys.argv[1]))"
    command = [sys.executable, "-c", script, place.sockets[0]]
    for variables, reason in (({}, ""), ({"PYTHONDEVMODE": "1"}, "PYTHONDEVMODE, which the interpreter reads")):
        said = subprocess.run(command, env=place.env | variables, capture_output=True, text=True, check=True).stdout
        assert said.startswith(reason)
        assert bool(said) is bool(reason)
    with pytest.raises(thin.NoServerError):
        thin.refusal(str(place.run / "none"))
