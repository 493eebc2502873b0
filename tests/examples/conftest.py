"""The example extensions, started as their manifests say."""

import contextlib
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

import zotd
from tests.needs import needs
from tests.npm import typescript as typescript_sdk
from tests.npm.packages import installed
from zotd.testing.ext_driver import ExtensionDriver

ROOT = Path(zotd.__file__).parent.parent
EXAMPLES = ROOT / "examples" / "extensions"


@pytest.fixture(scope="session")
def tsx(request):
    """The directory of the program `tsx`."""
    return installed(request.config) / ".bin"


@pytest.fixture(scope="session")
def node(request):
    """The directory of a Node that reads TypeScript."""
    return typescript_sdk.runtime(request.config, "node")[0].parent


@pytest.fixture
def processes():
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def launch(processes, tmp_path):
    """Starts a copy of an example; nothing is said yet."""

    def launch(name, *programs):
        directory = tmp_path / name
        shutil.copytree(EXAMPLES / name, directory, ignore=shutil.ignore_patterns("__pycache__"))
        manifest = json.loads((directory / "extension.json").read_text())
        if any(" jq " in script.read_text() for script in directory.glob("*.sh")):
            needs("jq")
        path = os.pathsep.join([*map(str, programs), str(Path(sys.executable).parent), os.environ["PATH"]])
        program = manifest["exec"]
        found = directory / program if "/" in program else shutil.which(program, path=path)
        if found is None:
            needs(program)
        argv = [found, *manifest.get("args", [])]
        driver = ExtensionDriver(argv, cwd=directory, env={"PATH": path, "PYTHONPATH": str(ROOT)})
        return processes.enter_context(driver)

    return launch


@pytest.fixture
def start(launch, tmp_path):
    """The same, and shakes hands; its data directory is `data`."""

    def start(name, *programs):
        driver = launch(name, *programs)
        (tmp_path / "data").mkdir(exist_ok=True)
        driver.registrations = driver.greet(
            provider="test",
            model="test",
            cwd="/",
            extension_dir=str(tmp_path / name),
            data_dir=str(tmp_path / "data"),
        )
        return driver

    return start


@pytest.fixture
def modules(processes, tmp_path):
    """Starts the host program of Python modules for the examples' directory."""

    def modules(*arguments, **env):
        argv = [sys.executable, ROOT / "zotd" / "sdk" / "modules", EXAMPLES, *arguments]
        driver = processes.enter_context(ExtensionDriver(argv, cwd=tmp_path, env=env))
        driver.registrations = driver.greet()
        return driver

    return modules
