"""Programs that are started by a template process, beside the same programs started by the interpreter."""

import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.template.descriptors import LIMIT_S, descriptors_at_rest
from zotd.template import program, server, thin

ROOT = Path(__file__).parents[2]
PROGRAM = "tests.template.program_for_tests"
ENVIRONMENT = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
LATIN = b"caf\xe9"
"""Not UTF-8."""


def command(path, *flags):
    return [sys.executable, "-m", server.__name__, *flags, str(path), PROGRAM]


@contextmanager
def serving(path, *flags, stdin=subprocess.PIPE, cwd=ROOT, env=ENVIRONMENT):
    """A template process that has imported the program and serves at this socket."""
    with subprocess.Popen(command(path, *flags), stdin=stdin, cwd=cwd, env=env) as process:
        try:
            while not path.exists():
                assert process.poll() is None
            yield process
        finally:
            process.kill()


@pytest.fixture
def template(tmp_path):
    """The socket of a template process that has imported the program."""
    path = tmp_path / "template.sock"
    with serving(path) as process:
        yield path
        process.stdin.close()
        assert process.wait(LIMIT_S) == 0
        assert not path.exists()


@pytest.fixture
def start(tmp_path):
    """`start(socket, *arguments)`: the program as a process; without a socket, the interpreter runs it."""
    (tmp_path / "work").mkdir()
    with ExitStack() as stack:

        def start(path, *arguments, module=PROGRAM, wrapper=(), **options):
            via = [sys.executable, "-m"] if path is None else [sys.executable, "-I", "-S", thin.__file__, str(path)]
            environment = {b"NAME": b"value", b"EMPTY": b"", b"LATIN": LATIN, b"TZ": b"Asia/Tokyo"}
            environment |= {b"PYTHONPATH": os.fsencode(ROOT), b"PATH": os.environb[b"PATH"]}
            options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
            options = {"cwd": tmp_path / "work", "env": environment} | options
            process = stack.enter_context(subprocess.Popen([*wrapper, *via, module, *arguments], **options))
            stack.callback(process.kill)
            return process

        yield start


@pytest.fixture
def both(start, template):
    """`both(*arguments)`: exit code, output and errors of the program, started by the template and cold."""

    def both(*arguments, piped=None, **options):
        options |= {"stdin": subprocess.PIPE} if piped is not None else {}
        found = []
        for path in (template, None):
            process = start(path, *arguments, **options)
            out, err = process.communicate(piped, timeout=LIMIT_S)
            found.append((process.returncode, out, err))
        return found

    return both


@pytest.mark.parametrize("argument", ["", "two words", "ünïcode \N{SNOWMAN}", os.fsdecode(LATIN), "-x", "--"])
def test_a_program_sees_the_same_arguments_environment_directory_and_signals(both, argument):
    warm, cold = both("describe", argument)
    assert warm == cold
    assert cold[0] == 0


@pytest.mark.parametrize("signals", ["--ignore-signal=HUP,INT,TSTP", "--block-signal=TERM,RTMAX", "--block-signal"])
def test_a_program_ignores_and_blocks_the_signals_that_its_parent_has_left_it(both, signals):
    if subprocess.run(["env", signals, "true"], check=False, capture_output=True).returncode:
        pytest.skip("env cannot ignore and block signals here")
    warm, cold = both("describe", wrapper=["env", signals])
    assert warm == cold
    assert cold[0] == 0


def test_a_program_of_nohup_outlives_the_terminal(start, template):
    process = start(template, "wait", wrapper=["env", "--ignore-signal=HUP"])
    assert process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    assert process.wait(LIMIT_S) == 7


@pytest.mark.parametrize(
    "arguments",
    [
        ("exit", "0"),
        ("exit", "3"),
        ("exit", "255"),
        ("system-exit",),
        ("kill", "SIGTERM"),
        ("kill", "SIGKILL"),
        ("kill", "SIGUSR1"),
    ],
)
def test_a_program_ends_in_the_same_way(both, arguments):
    warm, cold = both(*arguments)
    assert warm == cold


@pytest.mark.parametrize(
    ("arguments", "code", "word"), [(("raise", "why"), 1, b"ValueError: why\n"), (("kill", "SIGINT"), -2, b"")]
)
def test_an_exception_ends_a_program_in_the_same_way(both, arguments, code, word):
    for found, _, err in both(*arguments):
        assert found == code
        assert err.endswith(word)


def test_a_program_reads_its_input_and_writes_to_any_descriptor(both, tmp_path):
    warm, cold = both("echo", piped=b"x" * 1_000_000)
    assert warm == cold
    with (tmp_path / "file").open("w+b") as file:
        both("write", str(file.fileno()), pass_fds=[file.fileno()])
        assert (tmp_path / "file").read_bytes() == b"through a descriptor\n" * 2


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_a_closed_stream_is_closed_in_the_program(start, template, tmp_path, closed):
    found = []
    for path in (template, None):
        via = f"{sys.executable} -m" if path is None else f"{sys.executable} -I -S {thin.__file__} {path}"
        command = f"exec {via} {PROGRAM} exit 5 {closed}"
        environment = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
        found.append(subprocess.run(["sh", "-c", command], env=environment, check=False).returncode)
    assert found == [5, 5]


def test_a_directory_that_was_removed_and_a_large_environment_do_no_harm(start, template, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    command = f"rmdir {gone}; exec {sys.executable} -I -S {thin.__file__} {template} {PROGRAM} exit 4"
    assert subprocess.run(["sh", "-c", command], cwd=gone, check=False).returncode == 4
    large = {f"LARGE_{number}": "x" * 120_000 for number in range(12)}
    process = start(template, "exit", "6", env=large | {"PYTHONPATH": str(ROOT)})
    process.communicate(timeout=LIMIT_S)
    assert process.returncode == 6


def test_an_environment_of_ten_megabytes_is_that_of_the_program(template):
    large = (
        "import os, sys; from zotd.template import thin;"
        "os.environ.update({f'LARGE_{number}': 'x' * 1_000_000 for number in range(10)});"
        f"sys.exit(thin.run({str(template)!r}, [{PROGRAM!r}, 'variable-bytes', 'LARGE_']))"
    )
    command = [sys.executable, "-c", large]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, timeout=LIMIT_S, check=True)
    assert done.stdout == b"10000000"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 7), (signal.SIGHUP, -signal.SIGHUP)])
def test_a_signal_reaches_the_program(start, template, number, code):
    process = start(template, "wait")
    assert process.stdout.readline()
    process.send_signal(number)
    assert process.wait(LIMIT_S) == code


async def test_a_client_that_is_killed_ends_its_program(start, template, ended):
    process = start(template, "wait")
    pid = int(process.stdout.readline())
    process.kill()
    await ended(pid)


async def test_a_client_that_is_killed_after_the_template_process_ends_its_program(start, tmp_path, ended):
    path = tmp_path / "template.sock"
    with serving(path) as template:
        process = start(path, "wait")
        pid = int(process.stdout.readline())
        template.kill()
        template.wait()
        process.kill()
        await ended(pid)


def test_a_program_outlives_the_template_process_and_tells_its_exit_code(start, tmp_path):
    path = tmp_path / "template.sock"
    with serving(path) as template:
        process = start(path, "wait")
        assert process.stdout.readline()
        template.kill()
        template.wait()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=LIMIT_S)  # both pipes end with the program
        assert (process.returncode, out, err) == (7, b"", b"")


def test_a_client_says_that_the_exit_code_is_unknown_when_template_process_and_program_were_killed(start, tmp_path):
    path = tmp_path / "template.sock"
    with serving(path) as template:
        process = start(path, "wait")
        pid = int(process.stdout.readline())
        template.kill()
        template.wait()
        os.kill(pid, signal.SIGKILL)
        out, err = process.communicate(timeout=LIMIT_S)
        assert (process.returncode, out) == (1, b"")
        assert err.startswith(b"the exit code is unknown: ")
        later = start(path, "exit", "9")  # the socket is still there, and nothing listens
        assert later.wait(LIMIT_S) == 9


def test_without_a_template_process_a_program_starts_cold(start, tmp_path):
    process = start(tmp_path / "none", "exit", "8")
    assert process.wait(LIMIT_S) == 8


def test_two_hundred_programs_at_once_all_end_and_leave_no_zombie(start, template):
    processes = [start(template, "exit", str(number)) for number in range(200)]
    for number, process in enumerate(processes):
        process.communicate(timeout=LIMIT_S)
        assert process.returncode == number


NO_DESCRIPTORS = struct.pack(thin.REQUEST, len(PROGRAM), 0, 0o22, 0, 0, 0) + PROGRAM.encode()


@pytest.mark.parametrize("bad", [b"", b"\0", b"\xff" * 16, b"\0\0\0\x01" * 8 + b"rest", NO_DESCRIPTORS])
def test_a_client_that_sends_nonsense_costs_only_itself(start, template, bad):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(template))
        client.sendall(bad)
        client.shutdown(socket.SHUT_WR)
        client.settimeout(LIMIT_S)
        answers = b""
        with suppress(ConnectionResetError):  # what was sent behind the request is not read
            while more := client.recv(64):
                answers += more
    assert answers == struct.pack(thin.ANSWER, thin.READY, 0) + struct.pack(thin.ANSWER, thin.ENDED, program.FAILED)
    assert start(template, "exit", "2").wait(LIMIT_S) == 2


# --- which clients get a fork ----------------------------------------------------------------------------------------


def is_fork(pid):
    return server.__name__.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()


def ran_warm(process):
    """Whether the program of `start(…, "wait")` was forked, and not started cold."""
    return is_fork(int(process.stdout.readline()))


def test_a_program_is_a_fork_under_its_own_name(start, template):
    process = start(template, "wait")
    pid = int(process.stdout.readline())
    assert is_fork(pid)
    assert Path(f"/proc/{pid}/comm").read_text() == Path(f"/proc/{process.pid}/comm").read_text()


@pytest.mark.parametrize(
    ("wrapper", "variables", "is_warm"),
    [
        ([], {"PYTHONUNBUFFERED": "1"}, True),
        ([], {"PYTHONPATH": f"{ROOT}:{ROOT}"}, True),
        ([], {"PYTHONPATH": f"{ROOT}:/elsewhere"}, False),
        ([], {"PYTHONDEVMODE": "1"}, False),
        ([], {"LD_BIND_NOW": "1"}, False),
        ([], {"ZOT_STARTED_BY": "0123456789abcdef"}, False),
        (["setpriv", "--no-new-privs"], {}, False),
        (["unshare", "--uts", "--map-root-user"], {}, False),
    ],
)
def test_only_a_program_that_could_be_a_fork_is_one(start, template, wrapper, variables, is_warm):
    if wrapper and subprocess.run([*wrapper, "true"], check=False, capture_output=True).returncode:
        pytest.skip(f"{wrapper[0]} does not work here")
    process = start(template, "wait", wrapper=wrapper, env=ENVIRONMENT | variables)
    assert ran_warm(process) is is_warm


def test_a_descendant_of_a_daemon_gets_no_fork(start, template, tmp_path):
    """A fork has lost the parent chain that keeps it from approving its own calls."""
    daemon = tmp_path / "zotd"
    daemon.write_text('import subprocess, sys\nsubprocess.run(["env", "-i", *sys.argv[1:]])\n')
    environment = [f"{name}={value}" for name, value in ENVIRONMENT.items()]
    process = start(template, "wait", wrapper=[sys.executable, daemon, *environment])
    assert not ran_warm(process)


def test_a_program_has_the_limits_and_the_processors_of_its_client(start, template):
    niceness = min(os.getpriority(os.PRIO_PROCESS, 0) + 7, 19)
    limits = ["prlimit", "--nofile=77:99", "--core=0", "nice", "-n", "7", "taskset", "-c", "0"]
    if any(shutil.which(word) is None for word in ("prlimit", "taskset")):
        pytest.skip("prlimit or taskset is missing")
    process = start(template, "wait", wrapper=limits)
    pid = int(process.stdout.readline())
    assert is_fork(pid)
    assert resource.prlimit(pid, resource.RLIMIT_NOFILE) == (77, 99)
    assert os.getpriority(os.PRIO_PROCESS, pid) == os.getpriority(os.PRIO_PROCESS, process.pid) == niceness
    assert os.sched_getaffinity(pid) == {0}


# --- a template process that is not well -----------------------------------------------------------------------------


def test_a_stopped_template_process_delays_a_program_and_does_not_run_it_twice(start, tmp_path):
    path, ran = tmp_path / "template.sock", tmp_path / "ran"
    with serving(path) as process:
        process.send_signal(signal.SIGSTOP)
        program = start(path, "append", str(ran))
        assert program.wait(LIMIT_S) == 0
        process.send_signal(signal.SIGCONT)
        assert start(path, "append", str(ran)).wait(LIMIT_S) == 0
        assert ran.read_text() == "cold\nwarm\n"


def test_without_a_free_descriptor_programs_start_cold(start, tmp_path):
    path, ran = tmp_path / "template.sock", tmp_path / "ran"
    with serving(path) as process:
        assert start(path, "append", str(ran)).wait(LIMIT_S) == 0  # then it has begun to serve
        before = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        opened = descriptors_at_rest(process)
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (opened, before[1]))
        for _ in range(2):
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(LIMIT_S)
                client.connect(str(path))
                assert client.recv(1) == b""  # refused at once, and not found again and again
            assert start(path, "append", str(ran)).wait(LIMIT_S) == 0
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, before)
        assert start(path, "append", str(ran)).wait(LIMIT_S) == 0
        assert ran.read_text() == "warm\ncold\ncold\nwarm\n"
        assert descriptors_at_rest(process) == opened


def test_beside_as_many_clients_as_there_may_be_that_send_nothing_a_program_starts_cold(start, tmp_path):
    path, ran = tmp_path / "template.sock", tmp_path / "ran"
    with ExitStack() as stack:
        process = stack.enter_context(serving(path))
        for _ in range(server.MAX_PROGRAMS):
            client = stack.enter_context(socket.socket(socket.AF_UNIX))
            client.settimeout(LIMIT_S)
            client.connect(str(path))
            assert client.recv(1) == thin.READY
            fork = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[-1])
            os.kill(fork, signal.SIGSTOP)  # or it would end after `program.REQUEST_S`
            stack.callback(os.kill, fork, signal.SIGKILL)
        assert start(path, "append", str(ran)).wait(LIMIT_S) == 0
        assert ran.read_text() == "cold\n"


def test_a_template_process_retires_when_its_code_has_changed(start, tmp_path, ended):
    path, copy = tmp_path / "template.sock", tmp_path / "copy"
    shutil.copytree(ROOT / "zotd", copy / "zotd", ignore=shutil.ignore_patterns("__pycache__", "page"))
    shutil.copytree(ROOT / "tests/template", copy / "tests/template")
    with serving(path, cwd=copy, env=ENVIRONMENT | {"PYTHONPATH": str(copy)}) as process:
        first = start(path, "wait", env=ENVIRONMENT | {"PYTHONPATH": str(copy)})
        assert ran_warm(first)
        (copy / "zotd/template/program.py").write_text("changed")
        assert not ran_warm(start(path, "wait"))
        assert not path.exists()
        assert process.poll() is None  # it has a program
        first.send_signal(signal.SIGTERM)
        assert first.wait(LIMIT_S) == 7
        assert process.wait(LIMIT_S) == 0


def test_an_idle_template_process_ends_and_a_second_one_does_not_begin(tmp_path):
    path = tmp_path / "template.sock"
    with serving(path, "--idle", "0.5", stdin=subprocess.DEVNULL) as process:
        with subprocess.Popen(command(path), stdin=subprocess.DEVNULL, cwd=ROOT) as second:
            assert second.wait(LIMIT_S) == 0
        assert process.wait(LIMIT_S) == 0
    assert not path.exists()
