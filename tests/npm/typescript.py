"""The SDK for TypeScript, compiled once on a machine, and the programs that run its sources as they are."""

import hashlib
import shutil
import subprocess

import pytest

from tests.needs import ABSENT
from tests.npm.packages import HERE, alone, installed

SDK = HERE.parent.parent / "sdk" / "typescript"

RUNTIMES = {
    "node": ("node-*/bin/node", []),
    "bun": ("@oven/bun-*/bin/bun", ["run"]),
    "deno": ("@deno/*/deno", ["run", "--allow-all"]),
}
"""Where a program is in its package from npm, and the arguments before a script."""

BUILD_S = 60


def runtime(config, name):
    """The command that runs a script in TypeScript."""
    pattern, arguments = RUNTIMES[name]
    found = list(installed(config, HERE / "runtimes").glob(pattern))
    if not found:  # npm has it for fewer machines than zot runs on
        pytest.skip(f"{ABSENT}{name} from npm")
    return [found[0], *arguments]


def complaints(packages, directory):
    """What the compiler has against the program in this directory; empty if nothing. It writes what it compiles."""
    command = [packages / ".bin" / "tsc", "-p", directory]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=BUILD_S).stdout


def compiled(config):
    """The package as it is published: `dist` with JavaScript and its types."""
    packages = installed(config, SDK)
    digest = hashlib.sha256((SDK / "tsconfig.json").read_bytes())
    for source in sorted((SDK / "src").glob("*.ts")):
        digest.update(source.read_bytes())
    home = packages.parent / digest.hexdigest()[:16]
    with alone(home):
        if not (home / "done").exists():
            shutil.copy(SDK / "tsconfig.json", home)
            shutil.copy(SDK / "package.json", home)
            shutil.copytree(SDK / "src", home / "src", dirs_exist_ok=True)
            assert complaints(packages, home) == ""
            (home / "done").touch()
    return home / "dist"
