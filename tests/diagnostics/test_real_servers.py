"""Language servers as users have them, in their jail."""

import logging
import os
import sys
import venv
from pathlib import Path

import pytest

from tests.needs import needs
from tests.npm.packages import HERE, INSTALL_S, installed
from zotd.config.language_servers import LanguageServerSection
from zotd.diagnostics.catalog import CATALOG
from zotd.exthost.jails import ExtensionJails
from zotd.testing.language_server import LOG

TOOLS = Path(sys.executable).parent
"""Where pyright and ruff of this checkout are."""

LANGUAGE_SERVERS = HERE / "language-servers"


def only(*names):
    """Settings with these servers of the catalog."""
    return {row.name: LanguageServerSection(enabled=row.name in names) for row in CATALOG}


@pytest.fixture
def python_world(world, monkeypatch, caplog):
    needs("bwrap", "node")
    caplog.set_level(logging.INFO)  # what a server has refused, if a test fails
    monkeypatch.setenv("PATH", f"{TOOLS}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    return lambda servers: world(servers, jails=ExtensionJails)


async def test_ruff_tells_new_errors(python_world):
    async with python_world(only("ruff")) as here:
        (here.work / "app.py").write_text("print(old)\n")
        told = await here.edit("app.py", "print(old)\nprint(new)\n")
        assert told == "1 new error after this change:\napp.py:2:7: Undefined name `new` (ruff F821)"


async def test_pyright_tells_new_errors_and_those_in_other_files(python_world):
    async with python_world(only("pyright")) as here:
        assert await here.edit("shop.py", "def price(name: str) -> int:\n    return len(name)\n") == ""
        assert await here.edit("main.py", 'from shop import price\n\nprint(price("tea") + 1)\n') == ""
        told = await here.edit("shop.py", "def price(name: str) -> str:\n    return len(name)\n")
        assert "shop.py:2:12: " in told
        assert "(pyright reportReturnType)" in told
        told += await here.edit("shop.py", "def price(name: str) -> str:\n    return name\n")
        assert "main.py:3:7: " in told


async def test_pyright_knows_what_commands_have_made(python_world):
    async with python_world(only("pyright")) as here:
        assert "main.py:1:6: " in await here.edit("main.py", "from later import x\n")
        (here.work / "later.py").write_text("x: int = 1\n")
        assert await here.edit("main.py", "from later import x\n\nprint(x)\n") == ""
        assert "main.py:3:" in await here.edit("main.py", "from later import x\n\nprint(x.nothing)\n")


async def test_pyright_finds_the_packages_of_the_projects_own_environment(python_world):
    async with python_world(only("pyright")) as here:
        assert "main.py:1:8: " in await here.edit("main.py", "import teapot\n")
        venv.create(here.work / ".venv", symlinks=True)
        (packages,) = (here.work / ".venv" / "lib").glob("python3*/site-packages")
        (packages / "teapot.py").write_text("def pour() -> None: ...\n")
        assert await here.edit("main.py", "import teapot\n\nteapot.pour()\n") == ""
        assert "main.py:3:8: " in await here.edit("main.py", "import teapot\n\nteapot.drink()\n")


@pytest.fixture
def typescript(request, python_world, tmp_path):
    """Make a world in whose project this package of npm is TypeScript."""

    def begin(package, program):
        packages = installed(request.config, LANGUAGE_SERVERS)
        project = tmp_path / "work" / "node_modules"
        (project / ".bin").mkdir(parents=True)
        (project / "typescript").symlink_to(packages / package)
        (project / ".bin" / program).symlink_to((packages / ".bin" / program).resolve())
        if package == "typescript7":
            (project / ".bin" / "tsc").unlink()
            (project / ".bin" / "tsc").symlink_to(packages / package / "bin" / "tsc")
        (tmp_path / "work" / "tsconfig.json").write_text('{"compilerOptions": {"strict": true}}')
        return python_world(only("typescript", "typescript-language-server"))

    return begin


@pytest.mark.timeout(INSTALL_S + 180)
@pytest.mark.parametrize(
    ("package", "program", "server"),
    [("typescript7", "tsc", "typescript"), ("typescript", "typescript-language-server", "typescript-language-server")],
)
async def test_typescript_of_the_project_tells_new_errors(typescript, package, program, server):
    async with typescript(package, program) as here:
        assert await here.edit("price.ts", "export const price = (name: string): number => name.length;\n") == ""
        assert await here.edit("main.ts", 'import { price } from "./price";\nprice("tea");\n') == ""
        assert await here.edit("main.ts", 'import { price } from "./price";\nprice("tea") + 1;\n') == ""
        told = await here.edit("main.ts", 'import { price } from "./price";\nprice(7);\n')
        assert told.startswith("1 new error after this change:\nmain.ts:2:7: Argument of type 'number'")
        assert [(one.name, one.reason) for one in await here.servers.listing()] == [(server, "")]
        assert here.sentences == []


async def test_a_server_in_its_jail_cannot_change_the_workspace(python_world, tmp_path):
    server = tmp_path / "server"
    server.write_text(f"#!/bin/sh\ntouch {tmp_path}/work/made\nexec {sys.executable} -m zotd.testing.language_server\n")
    server.chmod(0o755)
    own = {"own": LanguageServerSection(command=(str(server),), languages={".txt": "plaintext"})}
    async with python_world(own) as here:
        here.env["TMPDIR"] = str(tmp_path / "temporary")  # else the workspace of a test would be a temporary file
        del here.env[LOG]
        assert "no such name" in await here.edit("a.txt", "x # error: no such name\n")
        assert not (here.work / "made").exists()


async def test_a_program_that_is_none_but_looks_so_is_off(python_world, tmp_path):
    stub = tmp_path / "rust-analyzer"  # as rustup leaves one where the component is not installed
    stub.write_text("#!/bin/sh\necho \"error: Unknown binary 'rust-analyzer'\" >&2\nexit 1\n")
    stub.chmod(0o755)
    own = {"own": LanguageServerSection(command=(str(stub),), languages={".rs": "rust"})}
    async with python_world(only() | own) as here:
        reason = "has exited with code 1: error: Unknown binary 'rust-analyzer'"
        for _ in range(3):
            assert reason in await here.edit("a.rs", "fn main() {}\n")
        assert await here.edit("a.rs", "fn main() {}\n") == ""
        (sentence,) = here.sentences
        assert reason in sentence
