"""How much of the code a reader has to pass who follows one prompt: the counts of `python -m benchmarks.trace`."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

LIMITS = {"prompt to provider": (150, 25), "`bash` call with its two requests": (1_200, 45)}
"""Calls and modules. A busy machine adds up to four modules to a `bash` call: a tick of the kernel's clock, an output in two pieces."""


def test_a_prompt_and_a_call_of_bash_pass_few_functions_and_modules():
    command = [sys.executable, "-m", "benchmarks.trace"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    found = {
        name: (int(calls), int(modules))
        for name, calls, modules in re.findall(r"^(.+): (\d+) calls, (\d+) modules", ended.stdout, re.MULTILINE)
    }
    for name, (calls, modules) in LIMITS.items():
        assert found[name][0] <= calls, f"{name}: {found[name]}"
        assert found[name][1] <= modules, f"{name}: {found[name]}"
