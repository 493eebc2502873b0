"""Extensions and module files written into a directory and run as real processes.

What both SDKs do is tested once, with a program in Python and one in TypeScript (`launch_program`, `start_program`).
"""

import contextlib
import sys
import textwrap
from pathlib import Path

import pytest

import zotd
from tests.needs import needs
from tests.npm import typescript as typescript_sdk
from tests.npm.packages import INSTALL_S
from zotd.testing.ext_driver import ExtensionDriver

ROOT = Path(zotd.__file__).parent.parent
SDK = ROOT / "zotd" / "sdk"

PYTHON = """\
import asyncio, os, sys, threading, time
from zotd.sdk import *
ext = Extension('mine', '1.2')
"""

TYPESCRIPT = """\
import { setTimeout as sleep } from "node:timers/promises";
import { arg, Decision, Display, Extension, Image, Insert, Noop, OpenPanel, Panel, Prompt, Result } from "SDK";
const ext = new Extension("mine", "1.2");
"""


@pytest.fixture
def write(tmp_path):
    """Writes a source file, at once: what watches its directory never sees half of it."""

    def write(name, source):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(path.name + ".draft")
        draft.write_text(textwrap.dedent(source))
        return draft.rename(path)

    return write


@pytest.fixture
def processes():
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def launch(write, processes, tmp_path):
    """Starts an extension from its source, between the construction of `ext` and `ext.run()`; nothing is said yet."""

    def launch(source):
        write("mine.py", PYTHON + textwrap.dedent(source) + "\next.run()\n")
        return processes.enter_context(
            ExtensionDriver([sys.executable, "mine.py"], cwd=tmp_path, env={"PYTHONPATH": str(ROOT)})
        )

    return launch


@pytest.fixture
def start(launch):
    """The same, and shakes hands."""

    def start(source, **hello_ack):
        driver = launch(source)
        driver.registrations = driver.greet(**hello_ack)
        return driver

    return start


FROM_NPM = pytest.mark.timeout(INSTALL_S + 60)
"""For the first test of a run, which installs what the others use."""


@pytest.fixture(
    params=[
        "python",
        *(pytest.param(name, marks=FROM_NPM) for name in ("javascript", *typescript_sdk.RUNTIMES)),
    ]
)
def language(request):
    """Python, JavaScript in this machine's Node with the package as it is published, or what runs the sources."""
    return request.param


@pytest.fixture
def launch_program(request, language, write, processes, tmp_path):
    """Starts the extension in one of its languages, between the construction of `ext` and `run()`; nothing is said yet."""

    def launch(*, python, typescript):
        if language == "python":
            write("mine.py", PYTHON + textwrap.dedent(python) + "\next.run()\n")
            argv = [sys.executable, "mine.py"]
        elif language == "javascript":
            needs("node")
            sdk = typescript_sdk.compiled(request.config) / "index.js"
            write(
                "mine.mjs", TYPESCRIPT.replace("SDK", str(sdk)) + textwrap.dedent(typescript) + "\nawait ext.run();\n"
            )
            argv = ["node", "mine.mjs"]
        else:
            sdk = typescript_sdk.SDK / "src" / "index.ts"
            write("mine.ts", TYPESCRIPT.replace("SDK", str(sdk)) + textwrap.dedent(typescript) + "\nawait ext.run();\n")
            argv = [*typescript_sdk.runtime(request.config, language), "mine.ts"]
        driver = ExtensionDriver(argv, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)})
        return processes.enter_context(driver)

    return launch


@pytest.fixture
def start_program(launch_program):
    """The same, and shakes hands."""

    def start(*, python, typescript, **hello_ack):
        driver = launch_program(python=python, typescript=typescript)
        driver.registrations = driver.greet(**hello_ack)
        return driver

    return start


@pytest.fixture
def modules(processes, tmp_path):
    """Starts the host program of Python modules for the test's directory."""

    def modules(*arguments, greet=True):
        driver = processes.enter_context(
            ExtensionDriver([sys.executable, SDK / "modules", *(arguments or [tmp_path])], cwd=tmp_path)
        )
        if greet:
            driver.registrations = driver.greet()
        return driver

    return modules
