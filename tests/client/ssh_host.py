"""A machine that ssh can reach: the system's sshd, for one user and with a key."""

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from zotd.testing.live_daemon import free_port

SSHD = "/usr/sbin/sshd"

GREETING = r"Welcome to box!\n"
"""What its login script prints."""

STOP_S = 10


class SshHost:
    """`box` for the ssh in `bin`, which comes first in a client's PATH. It has the programs in its own `bin`."""

    def __init__(self, folder: Path, env: dict[str, str], greeting: str = GREETING):
        """`env`: the environment of its user, without a path."""
        self.folder = folder
        self.bin = folder / "client-bin"
        self.programs = folder / "programs"
        self.known = folder / "known_hosts"
        self.port = free_port()
        self._server: subprocess.Popen[bytes] | None = None
        for made in (self.bin, self.programs):
            made.mkdir(parents=True)
        self.install()
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        self._write_login(env, greeting)
        self.know()
        (folder / "client").write_text(
            f"Host box\n HostName 127.0.0.1\n Port {self.port}\n IdentityFile {folder / 'user'}\n"
            f" UserKnownHostsFile {self.known}\n StrictHostKeyChecking ask\n IdentitiesOnly yes\n"
        )
        ssh = self.bin / "ssh"
        ssh.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder / "client"} "$@"\n')
        ssh.chmod(0o755)

    def install(self):
        """Give it zotctl."""
        (self.programs / "zotctl").symlink_to(Path(sys.executable).parent / "zotctl")

    def remove(self):
        (self.programs / "zotctl").unlink()

    def know(self):
        """Let clients know its key."""
        key = (self.folder / "host.pub").read_text()
        self.known.write_text(f"[127.0.0.1]:{self.port} {key}")

    def _write_login(self, env, greeting):
        login = self.folder / "login"
        words = " ".join(
            f"'{name}={value}'" for name, value in {**env, "PATH": f"{self.programs}:/usr/bin:/bin"}.items()
        )
        login.write_text(f'#!/bin/sh\nprintf "{greeting}"\nexec env -i {words} sh -c "$SSH_ORIGINAL_COMMAND"\n')
        login.chmod(0o755)
        key = (self.folder / "user.pub").read_text()
        (self.folder / "authorized_keys").write_text(f'command="{login}" {key}')
        (self.folder / "sshd_config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.folder / 'host'}\nPidFile none\nUsePAM no\n"
            f"AuthorizedKeysFile {self.folder / 'authorized_keys'}\nStrictModes no\nPasswordAuthentication no\n"
        )

    def cut(self):
        """End all connections, as a lost network does."""
        assert self._server is not None
        for process in psutil.Process(self._server.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                process.kill()

    @contextmanager
    def running(self):
        """Serve until the end of the block."""
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        self._server = server = subprocess.Popen(
            [SSHD, "-D", "-e", "-f", self.folder / "sshd_config"], stderr=subprocess.PIPE
        )
        assert server.stderr is not None
        try:
            while b"Server listening" not in (line := server.stderr.readline()):
                assert line, "sshd has ended"
            yield
        finally:
            server.terminate()
            server.wait(STOP_S)
            server.stderr.close()
