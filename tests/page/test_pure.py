"""The pure modules of the page, in Node: what is computed of events and of text, without a browser."""

import shutil
import subprocess
from pathlib import Path

from tests.needs import needs
from zotd.testing.live_daemon import ROOT

PURE = Path(__file__).parent / "pure.test.mjs"


def test_the_modules_that_compute_do_what_their_tests_say(tmp_path):
    needs("node")
    # Node takes a file for a module when the folder says so; those of a browser need no such folder.
    shutil.copytree(ROOT / "zotd" / "api" / "page", tmp_path, dirs_exist_ok=True)
    shutil.copy(PURE, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    ran = subprocess.run(["node", "--test"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "# fail 0" in ran.stdout
    assert "# tests 0" not in ran.stdout
