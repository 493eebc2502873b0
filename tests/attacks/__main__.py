"""Every attack of the table, tried: `python -m tests.attacks`, or only some: `python -m tests.attacks 27 100`.

Prints a line for each with what came of it. The exit code is 1 when a test fails, or fewer than `LEAST` attacks are
shown to fail.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree as ET

from tests.attacks.table import ATTACKS, Attack

ROOT = Path(__file__).parent.parent.parent

LEAST = 80
"""Attacks that must be shown to fail."""

WORKERS = 2
"""Each imports all files; neighbours stay together as long as both have some, for they share what is dear to start."""

WITHSTOOD, FAILED = "withstood", "**NOT**"

Results = Mapping[str, tuple[bool, float]]
"""Test to whether it passed, and its seconds."""


def main() -> int:
    """Run what is named, or all; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description="Does any known attack work?")
    parser.add_argument("ids", nargs="*", type=int, metavar="ID", help="only these")
    wanted = parser.parse_args().ids
    attacks = [attack for attack in ATTACKS if not wanted or attack.id in wanted]
    began = time.monotonic()
    results = _run(sorted({test for attack in attacks for test in attack.tests}))
    verdicts = [_verdict(attack, results) for attack in attacks]
    lines = ["| attack | | result | s |", "|---|---|---|---|"]
    for attack, (word, seconds) in zip(attacks, verdicts, strict=True):
        lines.append(f"| {attack.id} | {attack.what} | {word} | {seconds:.1f} |")
    words = [word for word, _ in verdicts]
    green, took = words.count(WITHSTOOD), time.monotonic() - began
    lines.append(f"\n{green} of {len(attacks)} attacks withstood, by {len(results)} tests, in {took:.0f} s")
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if FAILED in words or (not wanted and green < LEAST) else 0


def _run(tests: Sequence[str]) -> Results:
    """Have pytest run them; each of their cases with its result."""
    pytest = [sys.executable, "-m", "pytest", "-q", *(f"tests/{test}" for test in tests)]
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [*pytest, "-n", str(WORKERS), "--dist=worksteal", f"--junitxml={report}"]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
        cases = list(ET.parse(report).getroot().iter("testcase")) if report.exists() else []
    if done.returncode:
        sys.stderr.write(done.stdout)
    if not cases:  # a case that is not there; of that the workers say nothing
        subprocess.run([*pytest, "--collect-only", "-qq"], cwd=ROOT, stdout=sys.stderr, check=False)
    return {_name(case): (len(case) == 0, float(case.get("time", 0))) for case in cases}


def _name(case: ET.Element) -> str:
    """As the table has it: `api/test_unix.py::test_…`."""
    return f"{case.get('classname', '').removeprefix('tests.').replace('.', '/')}.py::{case.get('name')}"


def _verdict(attack: Attack, results: Results) -> tuple[str, float]:
    """What is said of an attack, and the seconds of all of its tests."""
    if not attack.tests:
        return f"no test: {attack.but}", 0.0
    cases = [[result for name, result in results.items() if _is_case(name, test)] for test in attack.tests]
    is_withstood = all(found and all(passed for passed, _ in found) for found in cases)
    return (WITHSTOOD if is_withstood else FAILED), sum(seconds for found in cases for _, seconds in found)


def _is_case(name: str, test: str) -> bool:
    return name == test or name.startswith(f"{test}[")


if __name__ == "__main__":
    sys.exit(main())
