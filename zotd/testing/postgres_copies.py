"""Servers whose clusters are copies of another one's."""

from pathlib import Path

from zotd.testing.postgres_server import START_S, PostgresServer


class PostgresStandby(PostgresServer):
    """A server that follows another one on this machine until it is promoted."""

    def __init__(self, primary: PostgresServer, *, fsync: bool) -> None:
        """Copy the primary, which runs, and follow it. `fsync`: see `PostgresServer`."""
        self._primary = primary
        super().__init__(fsync=fsync)

    def make_cluster(self) -> None:
        """Copy the primary."""
        base_backup(self._primary, self.data, "--write-recovery-conf", "--wal-method=stream")

    def promote(self) -> None:
        """Follow no more, and accept writes; return when it does."""
        self.run("pg_ctl", "-D", self.data, "-w", "-t", str(START_S), "promote")


def base_backup(server: PostgresServer, target: Path, *options: str) -> None:
    """Make a base backup of a server that runs."""
    source = f"host={server.directory} user=admin dbname=postgres"
    server.run("pg_basebackup", "-d", source, "-D", target, "--checkpoint=fast", "--no-sync", *options)
