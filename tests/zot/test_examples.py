"""The programs of examples/python, as they are in the documentation."""

import asyncio
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import needs
from zotd.testing.script import CallPart, calls, text

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted((ROOT / "examples/python").glob("*.py"))

MAX_LINES = 15
"""Longest program, without its docstrings and empty lines."""


def code(program):
    """The program without docstrings and empty lines."""
    source = re.sub(r'^ *""".*"""\n', "", program.read_text(), flags=re.MULTILINE)
    return [line for line in source.splitlines() if line.strip()]


@pytest.fixture
def run(place):
    """`await run(program, server)`: what the program prints in a directory of its own; it has to succeed."""

    async def run(program, server):
        place.home.mkdir(mode=0o700, exist_ok=True)
        (place.home / "config.toml").write_text(
            f'provider = "openai"\n[providers.openai]\nbase_url = "{server.openai_url}"\n'
        )
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(ROOT / "examples/python" / program)),
            cwd=place.cwd,
            env={**place.env, "OPENAI_API_KEY": "sk-x"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        assert (process.returncode, err.decode()) == (0, "")
        return out.decode()

    return run


async def test_answer(run, model, place):
    (place.cwd / "a").write_text("walrus")
    out = await run("answer.py", await model(calls(CallPart("read", {"path": "a"})), text("It is about walruses.")))
    assert out.startswith("It is about walruses.\n1 tool calls, $0.0")


async def test_stream(run, model):
    assert await run("stream.py", await model(text("a", "b"))) == "ab"


async def test_database(run, model, place):
    with sqlite3.connect(place.cwd / "shop.db") as db:
        db.execute("create table orders (customer text, item text)")
        db.execute("insert into orders values ('Ada', 'a loom')")
    db.close()
    server = await model(calls(CallPart("orders", {"customer": "Ada"})), text("A loom."))
    assert await run("database.py", server) == "A loom.\n"
    assert "a loom" in str(server.requests[1].messages)


async def test_permission(run, model, place):
    (place.cwd / "Makefile").write_text("test:\n\t@echo all is well\n")
    attempts = [calls(CallPart("bash", {"command": command})) for command in ("rm -rf .", "make test")]
    server = await model(*attempts, text("None."))
    out = await run("permission.py", server)
    assert out.endswith("None.\n")
    assert "rm -rf ." in out
    assert (place.cwd / "Makefile").exists()
    assert "change nothing" in str(server.requests[1].messages[-1])
    assert "all is well" in str(server.requests[2].messages[-1])


async def test_invoice(run, model, place):
    (place.cwd / "invoice.txt").write_text("No. 7: 12.50")
    read = calls(CallPart("read", {"path": "invoice.txt"}))
    server = await model(read, text("It is no. 7."), text('{"number": "7", "total_cents": 1250}'))
    assert await run("invoice.py", server) == "7: 12.50\n"


async def test_ten_at_once(run, model):
    assert await run("ten_at_once.py", await model(*(text("short") for _ in range(10)))) == "short\n" * 10


@pytest.mark.timeout(300)  # the first time, without a cache, all of zot is checked
def test_type_checkers_find_nothing():
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "examples/python"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout


@pytest.mark.timeout(300)
def test_pyright_finds_nothing_and_knows_the_types():
    needs("node")
    ran = subprocess.run(
        [sys.executable, "-m", "pyright", "examples/python", "tests/zot/inferred_types.py"],
        cwd=ROOT,
        env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_is_short_and_uses_nothing_but_the_public_face(program):
    lines = code(program)
    assert len(lines) <= MAX_LINES
    assert [line for line in lines if re.search(r"\bzotd\b", line)] == []
