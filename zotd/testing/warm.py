"""Runs the project's programs in tests without importing them each time, by one template process for each test process.

The programs are real: a process, a command line, an environment, descriptors. Only their imports have been done before.
"""

import atexit
import os
import pkgutil
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import zotctl
import zotd.providers
import zottui
from zotd.template import server, thin

PROGRAMS = (
    "zotd.__main__",
    "zotd.cli",
    "zotd.embed.rpc",
    "zotctl.__main__",
    "zotd.testing.model_server",
    "zotd.bridges.mcp.bridge",
    "mcp.server",
    "anthropic",
    "openai",
)

LAZY = (zotctl, zotd.providers, zottui)
"""Packages whose modules are imported when they are needed; here all of them are."""

COVERAGE = "COVERAGE_PROCESS_START"
"""Coverage measures programs that it starts itself, so with it they start cold."""


def command(module: str, *arguments: str | bytes | Path) -> list[str | bytes | Path]:
    """Return the command that runs `python -m MODULE ARGUMENT...`; the module has a `main` that returns the exit code."""
    if COVERAGE in os.environ:
        return [sys.executable, "-m", module, *arguments]
    return [sys.executable, "-I", "-S", thin.__file__, _socket(), module, *arguments]


@cache
def _socket() -> str:
    """The socket of the template process, which ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="zot-warm-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    read, write = os.pipe2(os.O_CLOEXEC)
    arguments = [str(folder / "sock"), *PROGRAMS, *_lazy_modules()]
    # Detached, it is no child of this process, so tests that look for children left behind do not find it.
    subprocess.run([sys.executable, "-m", server.__name__, "--detach", *arguments], stdin=read, check=True)  # noqa: S603
    os.close(read)
    atexit.register(os.close, write)  # the template process ends when its standard input does
    return str(folder / "sock")


def _lazy_modules() -> Sequence[str]:
    found = (pkgutil.walk_packages(package.__path__, f"{package.__name__}.") for package in LAZY)
    return [module.name for modules in found for module in modules]
