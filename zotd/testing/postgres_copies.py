"""Servers whose clusters are copies of another one's: a standby, and one that was restored to a point in time."""

import subprocess
from pathlib import Path

from zotd.testing.postgres_server import START_S, PostgresServer


class PostgresStandby(PostgresServer):
    """A server that follows another one on this machine until it is promoted."""

    def __init__(self, primary: PostgresServer, *, fsync: bool, directory: Path | None = None) -> None:
        """Copy the primary, which runs, and follow it. `fsync` and `directory`: see `PostgresServer`."""
        self._primary = primary
        super().__init__(fsync=fsync, directory=directory)

    def make_cluster(self) -> None:
        """Copy the primary."""
        base_backup(self._primary, self.data, "--write-recovery-conf", "--wal-method=stream")

    def promote(self) -> None:
        """Follow no more, and accept writes; return when it does."""
        self.run("pg_ctl", "-D", self.data, "-w", "-t", str(START_S), "promote")


class RestoredServer(PostgresServer):
    """A server made of a base backup and of an archive of the log."""

    def __init__(self, backup: Path, archive: Path, until: str, *, fsync: bool) -> None:
        """Restore what was committed up to `until`, a time with its zone; the server accepts writes then."""
        self._backup = backup
        self._settings = {
            "archive_mode": "off",
            "restore_command": f"cp {archive}/%f %p",
            "recovery_target_time": until,
            "recovery_target_action": "promote",
        }
        super().__init__(fsync=fsync)

    def make_cluster(self) -> None:
        """Copy the base backup."""
        # cp keeps the owner, which is the one that the server runs as.
        subprocess.run(["cp", "-a", self._backup, self.data], check=True, timeout=START_S)  # noqa: S603, S607
        (self.data / "recovery.signal").touch()
        self.configure(**self._settings)


def base_backup(server: PostgresServer, target: Path, *options: str) -> None:
    """Make a base backup of a server that runs."""
    source = f"host={server.directory} user=admin dbname=postgres"
    server.run("pg_basebackup", "-d", source, "-D", target, "--checkpoint=fast", "--no-sync", *options)
