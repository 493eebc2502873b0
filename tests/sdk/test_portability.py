"""The SDK alone: old interpreters, no other package, copied under another name."""

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import zotd

SDK = Path(zotd.__file__).parent / "sdk"
SOURCES = sorted(SDK.rglob("*.py"))
INTERPRETERS = [sys.executable, *filter(None, (shutil.which(f"python3.{minor}") for minor in range(9, 20)))]

EXTENSION = """
from zot_sdk import Extension

ext = Extension("copied")

@ext.tool
async def weather(city: str, days: "int | None" = None) -> str:
    return city

@ext.tool
def plain(city: str) -> str:
    return city

ext.run()
"""


def usable(interpreter):
    """A name on the path may stand for an interpreter that is not installed."""
    return subprocess.run([interpreter, "-c", ""], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(SDK)))
def test_every_module_is_python_3_9_and_imports_the_standard_library_only(path):
    tree = ast.parse(path.read_text(), feature_version=(3, 9))

    imported = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    imported += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level]
    own = {"zotd"} if path.name == "__main__.py" else set()  # what it has itself put in place
    assert {name.partition(".")[0] for name in imported} - sys.stdlib_module_names == own


@pytest.mark.parametrize("interpreter", list(filter(usable, INTERPRETERS)))
def test_a_copy_beside_an_extension_serves_it(tmp_path, interpreter):
    shutil.copytree(SDK, tmp_path / "zot_sdk", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "add.py").write_text("async def run(a: int, b: int = 1): return a + b")
    (tmp_path / "copied.py").write_text(EXTENSION)

    def run(*command, tool, **args):
        frames = [{"type": "hello_ack"}, {"type": "tool_call", "id": "1", "name": tool, "args": args}]
        line = [interpreter, "-W", "error", *command]
        pipe = subprocess.PIPE
        with subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe, cwd=tmp_path, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("".join(f"{json.dumps(frame)}\n" for frame in frames))
            process.stdin.flush()
            # The end of the input would be a stop, after which the call has 1.5 s.
            answer = next(line for line in process.stdout if '"tool_result"' in line)
            _, errors = process.communicate(timeout=40)
        assert (process.returncode, errors) == (0, "")
        return json.loads(answer)["content"][0]["text"]

    assert run("copied.py", tool="weather", city="Köln", days=None) == "Köln"
    assert run("copied.py", tool="plain", city="Köln") == "Köln"
    assert run("zot_sdk/modules", ".", tool="add", a=2) == "3"
    assert run("-m", "zot_sdk.modules", ".", tool="add", a=2) == "3"


def test_an_extension_without_coroutines_starts_without_the_modules_that_cost_most(tmp_path):
    source = """
        import sys
        from zotd.sdk import Extension
        ext = Extension("light")
        @ext.tool
        def loaded(city: str = "x"):
            return sorted({"asyncio", "inspect", "dataclasses", "logging", "pathlib", "traceback"} & set(sys.modules))
        ext.run()
        """
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({str(SDK.parent.parent)!r})" + dedent(source)],
        input=b'{"type":"tool_call","id":"1","name":"loaded","args":{}}',
        capture_output=True,
        timeout=40,
        check=True,
    )

    assert json.loads(ended.stdout.splitlines()[-1])["content"][0]["text"] == "[]"
