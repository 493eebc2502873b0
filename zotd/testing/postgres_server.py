"""A PostgreSQL server in a temporary directory, without TCP."""

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
"""Where the server's programs are."""

MISSING = "no PostgreSQL server is installed" if PROGRAMS is None else None
if importlib.util.find_spec("psycopg") is None:
    MISSING = "psycopg is not installed"
"""What is missing of what is needed; None if there is everything."""

START_S = 60
END_S = 60


class PostgresServer:
    """A server that runs from its construction until `close`; no child of this process."""

    def __init__(self, *, fsync: bool, directory: Path | None = None) -> None:
        """Make an empty cluster and start it.

        Args:
            fsync: without, it is faster, and must not be killed.
            directory: where everything is, with a path of at most 90 bytes (a socket is in it); by default a new one.
        """
        if PROGRAMS is None:
            raise RuntimeError(MISSING)
        self.programs = PROGRAMS
        self.directory = directory or Path(tempfile.mkdtemp(prefix="zotpg-", dir="/tmp"))
        # PostgreSQL refuses to run as root.
        self.user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        if self.user is not None:
            os.chown(self.directory, self.user.pw_uid, self.user.pw_gid)
        self.make_cluster()
        self.configure(listen_addresses="", fsync="on" if fsync else "off", unix_socket_directories=str(self.directory))
        self.start()

    @property
    def data(self) -> Path:
        """The directory of the cluster."""
        return self.directory / "data"

    def make_cluster(self) -> None:
        """Make the directory of the cluster; part of the construction."""
        self.run("initdb", "-D", self.data, "-A", "trust", "-U", "admin", "-E", "UTF8", "--no-sync", "--locale=C")

    def run(self, program: str, *args: str | Path) -> None:
        """Run a program of the server, as the user that the server has."""
        with (self.directory / "log").open("ab") as log:
            subprocess.run(  # noqa: S603  (a program of the server)
                [self.programs / program, *args],
                check=True,
                cwd=self.directory,
                stdout=log,
                stderr=log,
                timeout=START_S,
                user=None if self.user is None else self.user.pw_uid,
                group=None if self.user is None else self.user.pw_gid,
                extra_groups=None if self.user is None else [],
            )

    def configure(self, **settings: str) -> None:
        """Change parameters of the server; they hold from its next start on."""
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def start(self) -> None:
        """Start it in the background; return when it accepts connections."""
        self.run("pg_ctl", "-D", self.data, "-w", "-t", str(START_S), "-l", self.directory / "server.log", "start")

    def kill(self) -> None:
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
            if not select.select([end], [], [], END_S)[0]:
                raise TimeoutError("a process of the server did not end")
            os.close(end)
        # All are dead, but in a container nobody may reap them, and the next server would take them for alive.
        for left in (lock, *self.directory.glob(".s.PGSQL.*")):
            left.unlink(missing_ok=True)

    def stop(self) -> None:
        """End it as its administrator would."""
        self.run("pg_ctl", "-D", self.data, "-m", "fast", "-w", "-t", str(END_S), "stop")

    def database(self) -> str:
        """Make an empty database and return its URL."""
        psycopg = importlib.import_module("psycopg")  # only here: most programs that import this need no server
        name = f"d{secrets.token_hex(6)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def url(self, name: str) -> str:
        """Return the URL of the database with this name."""
        return f"postgresql://admin@/{name}?host={self.directory}"

    def close(self) -> None:
        """End it at once, if it runs, and remove everything."""
        if (self.data / "postmaster.pid").exists():
            self.run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "-t", str(END_S), "stop")
        shutil.rmtree(self.directory)
