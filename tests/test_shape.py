"""What no linter checks: the size of modules and functions, and that nothing of one machine is in the sources."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

MODULE_LINES = 400
FUNCTION_LINES = 60
FILE_BYTES = 500_000
"""Largest file outside docs/pictures: every clone and every sdist carries it."""

DECLARATION_LINES = 10
"""Longest function of a module that only declares things."""

PYTHON = sorted(
    path
    for folder in ("zotd", "zotctl", "zottui", "tests", "benchmarks", "scripts", "examples")
    for path in (ROOT / folder).rglob("*.py")
)
TEXTS = sorted(
    path
    for pattern in (
        ".ci/*",
        "*.md",
        "*.toml",
        "Makefile",
        "docs/**/*",
        "examples/**/*",
        "systemd/*",
        "**/*.py",
        "**/*.md",
    )
    for path in ROOT.glob(pattern)
    if path.is_file() and path.suffix != ".png" and ".venv" not in path.parts
)

THIS_MACHINE = re.compile(r"(?<![\w.$~{}])/(?:root|work|opt)/\w")
NAKED_TODO = re.compile(r"\b(?:TODO|FIXME|XXX)\b(?!\(#\d+\))")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def only_declares(tree: ast.Module) -> bool:
    """Whether a module is a table: classes, assignments, and functions so short that they are part of it."""
    kinds = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.Expr, ast.FunctionDef)
    return all(isinstance(node, kinds) for node in tree.body) and all(
        length(function) <= DECLARATION_LINES for function in functions(tree)
    )


def test_a_module_fits_in_a_head():
    def is_too_long(path):
        source = path.read_text()
        return source.count("\n") > MODULE_LINES and not only_declares(ast.parse(source))

    assert [name(path) for path in PYTHON if is_too_long(path)] == []


def test_a_function_fits_on_a_screen():
    found = [(name(path), function) for path in PYTHON for function in functions(ast.parse(path.read_text()))]
    assert [f"{path}: {function.name}" for path, function in found if length(function) > FUNCTION_LINES] == []


def test_no_source_names_a_directory_of_the_machine_it_was_written_on():
    assert [name(path) for path in TEXTS if THIS_MACHINE.search(path.read_text())] == []


def test_a_todo_carries_the_number_of_its_issue():
    mine = Path(__file__)
    assert [name(path) for path in PYTHON if path != mine and NAKED_TODO.search(path.read_text())] == []


def test_a_committed_file_is_small_enough_for_every_clone():
    try:
        listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("git: this is not a checkout")
    paths = [ROOT / file for file in listing.decode().split("\0") if file and not file.startswith("docs/pictures/")]
    assert [name(path) for path in paths if path.is_file() and path.stat().st_size > FILE_BYTES] == []
