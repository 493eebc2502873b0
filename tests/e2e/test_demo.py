"""What `make demo` runs: the one test with a real model."""

import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "examples/demo.py"

DEMO_S = 240
"""The demo's own bounds end it earlier; it takes 10 s when nothing else runs."""


@pytest.mark.timeout(DEMO_S)
def test_the_demo_finds_the_word_of_its_run():
    demo = subprocess.run([sys.executable, DEMO], capture_output=True, check=False, text=True)
    assert demo.returncode == 0, demo.stdout + demo.stderr
