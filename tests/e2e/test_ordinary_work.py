"""What people do all day works in the default mode as without a jail: builds, tests, commits, and packages from a registry.

The registry is a server outside of the jail, at an address that is allowed nowhere by default, so each fetch goes through
the proxy.
"""

import base64
import gzip
import hashlib
import json
import os
import sys
import tarfile
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.e2e.conftest import only
from tests.e2e.test_hosts import NETWORK, log_of
from tests.e2e.test_hosts import yard as yard  # noqa: PLC0414  (a fixture)
from tests.e2e.test_workspace import bash, results_of
from tests.e2e.test_workspace import user as user  # noqa: PLC0414  (a fixture)
from tests.jail.conftest import files
from tests.needs import needs
from zotd.testing.script import CallPart, calls, text

BIN = Path(sys.executable).parent

PATH = os.pathsep.join([str(BIN), os.environ["PATH"]])

ENDED = "every command has ended well"

MODULE = 'def greet():\n    return "hello"\n'

WHEEL = {
    "greeting.py": MODULE,
    "greeting-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n",
    "greeting-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "greeting-1.0.dist-info/RECORD": "greeting.py,,\ngreeting-1.0.dist-info/METADATA,,\n"
    "greeting-1.0.dist-info/WHEEL,,\ngreeting-1.0.dist-info/RECORD,,\n",
}

PACKAGE = {
    "package/package.json": json.dumps({"name": "greeting", "version": "1.0.0", "main": "index.js"}),
    "package/index.js": 'module.exports = () => "hello";\n',
}

GREET = "from greeting import greet; print(greet())"


def serve_packages(folder):
    """Write a package for Python and one for Node into the folder of a server; the latter's digest, as npm writes it."""
    simple = folder / "simple" / "greeting"
    simple.mkdir(parents=True)
    with ZipFile(simple / "greeting-1.0-py3-none-any.whl", "w") as wheel:
        for name, content in WHEEL.items():
            wheel.writestr(name, content)
    link = '<a href="greeting-1.0-py3-none-any.whl">greeting-1.0-py3-none-any.whl</a>'
    (simple / "index.html").write_text(f"<!doctype html><html><body>{link}</body></html>")
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in PACKAGE.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, BytesIO(content.encode()))
    package = gzip.compress(packed.getvalue(), mtime=0)
    (folder / "greeting-1.0.0.tgz").write_bytes(package)
    return "sha512-" + base64.b64encode(hashlib.sha512(package).digest()).decode()


@pytest.fixture
async def works(yard, tmp_path):
    """Runs shell commands in a session, of which each must end well and none may ask; their output.

    `HOST` in a command is the registry.
    """

    async def works(*commands):
        serve_packages(tmp_path)
        with files(tmp_path) as port:
            host = f"127.0.0.3:{port}"
            await yard.configure(NETWORK.format([host]))
            script = " &&\n".join(["set -e", *commands, f"echo {ENDED}"]).replace("HOST", host)
            env = yard.env | {"PATH": PATH}
            talk, _ = await yard.open(calls(CallPart(*bash(script))), text("done"), env=env)
            events = await talk.run()
        assert only(events, "approval_requested") == []
        [said] = results_of(events)
        assert ENDED in said.split("$ ", 1)[-1].splitlines(), said
        return said

    return works


async def test_a_repository_is_made_and_committed_to(works, yard):
    needs("git")
    await works(
        *("git init -q", "echo one > a", "git add a"),
        "git -c user.name=t -c user.email=t@example.org commit -qm first",
        "git log --oneline | grep first",
    )
    assert (yard.work / ".git" / "refs").is_dir()


async def test_a_program_in_c_is_made_and_run(works, yard):
    needs("make", "cc")
    (yard.work / "main.c").write_text('#include <stdio.h>\nint main(void) { puts("hello"); }\n')
    (yard.work / "Makefile").write_text("main: main.c\n\tcc -O1 -o main main.c\n")
    assert "hello" in await works("make -s", "./main")


async def test_tests_run_with_temporary_files_and_a_cache(works, yard):
    (yard.work / "test_it.py").write_text("def test_it(tmp_path):\n    (tmp_path / 'f').write_text('x')\n")
    assert "1 passed" in await works("python3 -m pytest -q -p no:playwright test_it.py")
    assert (yard.work / ".pytest_cache").is_dir()


async def test_pip_installs_from_a_registry_into_an_environment(works, yard):
    install = "env/bin/python -m pip install --quiet --disable-pip-version-check --index-url http://HOST/simple"
    assert "hello" in await works(
        "python3 -m venv env",
        f"{install} --trusted-host 127.0.0.3 greeting",
        f"env/bin/python -c '{GREET}'",
    )
    assert {outcome for _, _, outcome in log_of(yard)} == {"allowed"}


async def test_uv_installs_from_a_registry_and_keeps_its_cache(works, yard):
    assert "hello" in await works(
        "uv venv --quiet --python python3 env",
        "uv pip install --quiet --python env/bin/python --index-url http://HOST/simple greeting",
        f"env/bin/python -c '{GREET}'",
    )
    assert (Path(yard.home) / ".cache" / "uv").is_dir()


async def test_npm_installs_what_a_lock_file_says(works, yard, tmp_path):
    needs("npm", "node")
    integrity = serve_packages(tmp_path / "same")
    (yard.work / "package.json").write_text('{"name": "app", "dependencies": {"greeting": "1.0.0"}}')
    locked = {"version": "1.0.0", "resolved": "http://HOST/greeting-1.0.0.tgz", "integrity": integrity}
    packages = {"": {"name": "app", "dependencies": {"greeting": "1.0.0"}}, "node_modules/greeting": locked}
    lock = {"name": "app", "lockfileVersion": 3, "packages": packages}
    (yard.work / "package-lock.json").write_text(json.dumps(lock))
    assert "hello" in await works(
        "sed -i s/HO''ST/HOST/ package-lock.json",
        "npm ci --no-audit --no-fund --no-update-notifier",
        "node -e 'console.log(require(`greeting`)())'",
    )


async def test_a_program_in_go_is_built_with_its_cache(works, yard):
    (yard.work / "go.mod").write_text("module app\n\ngo 1.21\n")
    (yard.work / "main.go").write_text('package main\n\nfunc main() { println("hello") }\n')
    assert "hello" in await works("GOTOOLCHAIN=local GOPROXY=off go build -o app .", "./app")
    assert (Path(yard.home) / ".cache" / "go-build").is_dir()
