"""A home without problems, for a test to break."""

import json
import subprocess
import sys
from contextlib import ExitStack

import pytest

from zotctl.doctor import runner
from zotd.testing.live_daemon import DaemonProcess, place

KEY = "sk-doctor-0123456789abcdef"


class Patient:
    """A home without problems, for a test to break."""

    def __init__(self, folder, stack):
        self.place = place(folder, {"OPENAI_API_KEY": KEY})
        self.home = self.place.home
        self.home.mkdir(mode=0o700)
        self.folder = folder
        self.env = dict(self.place.env)
        self.prefix = []
        """What stands before the command."""
        self._stack = stack

    def daemon(self, *wrapper):
        return self._stack.enter_context(DaemonProcess(self.folder, {"OPENAI_API_KEY": KEY}, wrapper=wrapper))

    def database(self):
        """The file of one that has been used."""
        self.daemon().end()
        return self.home / "zot.db"

    def program(self, name, text):
        folder = self.folder / "bin"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
        self.env["PATH"] = f"{folder}:{self.env['PATH']}"

    def service(self):
        folder = self.folder / "user" / ".config" / "systemd" / "user"
        folder.mkdir(parents=True)
        (folder / "zotd.service").write_text(f"[Service]\nEnvironment=ZOT_HOME={self.home}\n")

    def found(self, capsys):
        """Return the exit code and the findings. Runs in this process, which is faster than starting a program."""
        if self.prefix:
            code, out = self.examine("--json")
            return code, json.loads(out)
        code = runner.run(self.env, as_json=True)
        out, err = capsys.readouterr()
        assert err == ""
        return code, json.loads(out)

    def said(self):
        """The exit code and the lines, without those about the jail, which differ from machine to machine."""
        code, out = self.examine()
        state, *lines = out.splitlines()
        jail = [line for line in lines if line.startswith(("commands of the model run in a jail of ", "    "))]
        assert jail
        return code, [state, *(line for line in lines if line not in jail)]

    def examine(self, *flags):
        """Run the program; return its exit code and output."""
        command = [*self.prefix, sys.executable, "-m", "zotctl", "doctor", *flags]
        done = subprocess.run(
            command, env=self.env, cwd=self.place.cwd, capture_output=True, text=True, check=False, timeout=50
        )
        assert done.stderr == ""
        return done.returncode, done.stdout


@pytest.fixture
def patient(tmp_path):
    with ExitStack() as stack:
        yield Patient(tmp_path, stack)
