"""The table of attacks says what is there."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.attacks.__main__ import LEAST
from tests.attacks.table import ATTACKS
from tests.faults.__main__ import CHECKS

TESTS = Path(__file__).parent.parent


@cache
def functions(file: str) -> dict[str, bool]:
    """The tests of a file, and whether they have cases."""
    tree = ast.parse((TESTS / file).read_text())
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {node.name: any("parametrize" in ast.unparse(one) for one in node.decorator_list) for node in found}


def test_every_attack_is_there_once():
    assert [attack.id for attack in ATTACKS] == list(range(1, 101))


def test_every_test_that_is_named_exists():
    for attack in ATTACKS:
        assert len(set(attack.tests)) == len(attack.tests)
        for test in attack.tests:
            file, _, case = test.partition("::")
            name, bracket, _ = case.partition("[")
            assert name in functions(file), f"{attack.id}: {test}"
            assert functions(file)[name] or not bracket, f"{attack.id}: {test}"


def test_every_case_that_is_named_exists():
    """Only pytest knows the cases of a test; without one of them it runs no test at all."""
    cases = sorted({test for attack in ATTACKS for test in attack.tests if "[" in test})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *(f"tests/{case}" for case in cases)],
        cwd=TESTS.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_what_has_no_test_has_a_reason():
    assert [attack.id for attack in ATTACKS if not attack.tests and not attack.but] == []
    assert len([attack for attack in ATTACKS if attack.tests]) >= LEAST


@pytest.mark.parametrize("attack", [attack for attack in ATTACKS if attack.faults], ids=lambda attack: attack.id)
def test_every_check_that_is_named_exists(attack):
    assert attack.faults in CHECKS
