"""A PostgreSQL server of one test process, in a temporary directory, without TCP."""

import contextlib
import importlib.util
import os
import pwd
import secrets
import select
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

PROGRAMS = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"))), None)
MISSING = "no PostgreSQL server is installed" if PROGRAMS is None else None
if importlib.util.find_spec("psycopg") is None:
    MISSING = "psycopg is not installed"
"""Why the tests that need both are skipped; None if they are not."""

START_S = 60
END_S = 60


class Server:
    """`fsync=False` is for tests that never kill it."""

    def __init__(self, *, fsync=False):
        self.directory = Path(tempfile.mkdtemp(prefix="zotpg-", dir="/tmp"))  # a socket's path has 107 bytes at most
        self.fsync = fsync
        # PostgreSQL refuses to run as root.
        self.user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        if self.user is not None:
            os.chown(self.directory, self.user.pw_uid, self.user.pw_gid)
        self.identity = (
            {} if self.user is None else {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []}
        )
        self.run("initdb", "-D", self.data, "-A", "trust", "-U", "admin", "-E", "UTF8", "--no-sync", "--locale=C")
        self.start()

    @property
    def data(self):
        return self.directory / "data"

    def run(self, program, *args):
        with (self.directory / "log").open("ab") as log:
            command = [PROGRAMS / program, *args]
            subprocess.run(
                command, check=True, cwd=self.directory, stdout=log, stderr=log, timeout=START_S, **self.identity
            )  # type: ignore[call-overload]

    def start(self):
        """Start it in the background, so that it is no child of the test; return when it accepts connections."""
        options = f"-k {self.directory} -c listen_addresses='' -c fsync={'on' if self.fsync else 'off'}"
        wait = ("-w", "-t", str(START_S))
        self.run("pg_ctl", "-D", self.data, *wait, "-l", self.directory / "server.log", "-o", options, "start")

    def kill(self):
        """End every process of the server at once, as a crash does."""
        lock = self.data / "postmaster.pid"
        postmaster = int(lock.read_text().splitlines()[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        ends = []
        for process in [postmaster, *map(int, children)]:
            with contextlib.suppress(ProcessLookupError):
                ends.append(os.pidfd_open(process))
                signal.pidfd_send_signal(ends[-1], signal.SIGKILL)
        # A server does not start while a process of the one before has its memory.
        for end in ends:
            assert select.select([end], [], [], END_S)[0], "a process of the server did not end"
            os.close(end)
        # All are dead, but in a container nobody may reap them, and the next server would take them for alive.
        for left in (lock, *self.directory.glob(".s.PGSQL.*")):
            left.unlink(missing_ok=True)

    def stop(self):
        """End it as its administrator would."""
        self.run("pg_ctl", "-D", self.data, "-m", "fast", "-w", "-t", str(END_S), "stop")

    def database(self):
        """Make an empty database and return its URL."""
        psycopg = importlib.import_module("psycopg")  # only here: most tests of the store do not need it
        name = f"d{secrets.token_hex(6)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def url(self, name):
        return f"postgresql://admin@/{name}?host={self.directory}"

    def close(self):
        self.run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "-t", str(END_S), "stop")
        shutil.rmtree(self.directory)
