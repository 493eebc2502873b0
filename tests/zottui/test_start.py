"""What stands between Enter and the first paint."""

import subprocess
import sys

BEFORE_THE_FIRST_PAINT = "zotd.cli, zottui.__main__, zottui.inline, zottui.app, zottui.theme"

HEAVY = {"aiohttp", "difflib", "http.client", "importlib.metadata", "markdown_it", "pygments", "sqlite3", "zotd.config"}
"""Each takes some milliseconds at least, and can wait until it is needed."""


def test_nothing_heavy_is_imported_before_the_first_paint():
    code = f"import sys, {BEFORE_THE_FIRST_PAINT}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert not HEAVY & set(done.stdout.split())
