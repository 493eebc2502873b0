"""An environment of Harbor without a container engine: commands run with bubblewrap in a file system made of a few directories.

Harbor imports it, in an interpreter of its own.
"""

import asyncio
import os
import shutil
from asyncio.subprocess import PIPE
from pathlib import Path

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities

ROOT = Path(__file__).parent.parent.parent

OWN = ("app", "home", "installed-agent", "logs", "solution", "tests", "tmp")
"""Directories of the environment; everything else is the machine's, and read-only."""

PASSED = ("PIP_CERT", "SSL_CERT_FILE", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "https_proxy", "HTTPS_PROXY")
"""Variables with which this machine reaches a registry of packages."""

LINKS = {"/bin": "usr/bin", "/sbin": "usr/sbin", "/lib": "usr/lib", "/lib64": "usr/lib64"}


class BubblewrapEnvironment(BaseEnvironment):
    """Has the programs of this project on its PATH, in `/app`."""

    @staticmethod
    def type():
        return "bubblewrap"

    @property
    def capabilities(self):
        return EnvironmentCapabilities()

    def _validate_definition(self):
        pass

    async def start(self, force_build):
        del force_build
        for name in (*OWN, "logs/agent", "logs/artifacts", "logs/verifier"):
            self._at(name).mkdir(parents=True, exist_ok=True)
        shutil.copytree(self.environment_dir, self._at("/app"), dirs_exist_ok=True)

    async def stop(self, delete):
        if delete:
            shutil.rmtree(self._folder)

    async def upload_file(self, source_path, target_path):
        self._at(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source_path, self._at(target_path))

    async def upload_dir(self, source_dir, target_dir):
        shutil.copytree(source_dir, self._at(target_dir), dirs_exist_ok=True)

    async def download_file(self, source_path, target_path):
        shutil.copy(self._at(source_path), target_path)

    async def download_dir(self, source_dir, target_dir):
        shutil.copytree(self._at(source_dir), target_dir, dirs_exist_ok=True)

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None):
        del user  # there is one
        programs = f"{ROOT}/.venv/bin:/usr/bin:/bin"
        places = {name: os.environ[name] for name in PASSED if name in os.environ}
        env = {**places, "PATH": programs, "HOME": "/home", "TMPDIR": "/tmp", **(self._merge_env(env) or {})}
        process = await asyncio.create_subprocess_exec(
            *self._jail(cwd or "/app"),
            "bash",
            "-c",
            command,
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
        )
        async with asyncio.timeout(timeout_sec):
            out, err = await process.communicate()
        return ExecResult(stdout=out.decode(), stderr=err.decode(), return_code=process.returncode)

    @property
    def _folder(self):
        return self.trial_paths.trial_dir / "root"

    def _at(self, path):
        return self._folder / str(path).lstrip("/")

    def _jail(self, cwd):
        # The programs of the project, and the interpreter that they run in, wherever it was installed.
        python = Path(os.path.realpath(ROOT / ".venv/bin/python")).parent.parent
        shown = [ROOT, Path("/usr"), Path("/etc"), *([] if python == Path("/usr") else [python])]
        # Own directories first: the project may be in one that is called like one of them, such as /tmp.
        binds = [word for name in OWN for word in ("--bind", str(self._at(name)), f"/{name}")]
        binds += [word for path in shown for word in ("--ro-bind", str(path), str(path))]
        binds += [word for path, target in LINKS.items() for word in ("--symlink", target, path)]
        return [
            "bwrap",
            "--unshare-pid",
            "--die-with-parent",
            "--proc",
            "/proc",
            "--dev",
            "/dev",
            *binds,
            "--chdir",
            cwd,
        ]
