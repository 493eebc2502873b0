"""How much of the code a reader has to pass who follows one prompt: the counts of `python -m benchmarks.trace`."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_a_prompt_and_a_call_of_bash_pass_few_functions_and_modules():
    command = [sys.executable, "-m", "benchmarks.trace"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    found = {
        name: (int(calls), int(modules))
        for name, calls, modules in re.findall(r"^(.+): (\d+) calls, (\d+) modules", ended.stdout, re.MULTILINE)
    }
    calls, modules = found["prompt to provider"]
    assert calls <= 150
    assert modules <= 25
    # Not its calls: of each piece in which a reply or an output comes, there are more.
    _, modules = found["`bash` call with its two requests"]
    assert modules <= 40
