"""Extensions and module files written into a directory and run as real processes."""

import contextlib
import sys
import textwrap
from pathlib import Path

import pytest

import zotd
from zotd.testing.ext_driver import ExtensionDriver

ROOT = Path(zotd.__file__).parent.parent
SDK = ROOT / "zotd" / "sdk"


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
        text = "import asyncio, os, sys, threading, time\nfrom zotd.sdk import *\next = Extension('mine', '1.2')\n"
        write("mine.py", text + textwrap.dedent(source) + "\next.run()\n")
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
