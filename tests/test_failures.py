"""How a run of the tests reports what went wrong in it."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def output_of_a_run(folder, text, *options):
    (folder / "test_one.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "tests.failures", "-p", "no:cacheprovider", *options, str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
    run = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=folder, env=environment, timeout=120
    )  # it fails
    return run.stdout


def test_a_failure_whose_text_is_not_utf_8_is_reported_by_a_worker(tmp_path):
    text = "import os\ndef test_name():\n    raise OSError('cannot read ' + os.fsdecode(b'\\xff'))\n"
    output = output_of_a_run(tmp_path, text, "-n", "1")
    assert "cannot read \\udcff" in output
    assert "1 failed" in output
    assert "INTERNALERROR" not in output


def test_a_failed_test_is_named_when_it_happens(tmp_path):
    text = "def test_first():\n    assert False\n\ndef test_second():\n    pass\n"
    output = output_of_a_run(tmp_path, text, "-v")
    assert output.index("\nFAILED test_one.py::test_first\n") < output.index("test_second PASSED")


def test_the_first_internal_error_is_printed_again_at_the_end(tmp_path):
    (tmp_path / "conftest.py").write_text("def pytest_runtest_protocol():\n    raise LookupError('no such thing')\n")
    output = output_of_a_run(tmp_path, "def test_one():\n    pass\n", "-n", "1")
    assert "LookupError: no such thing" in output[output.index("first internal error:") :]
