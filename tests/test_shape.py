"""What no linter checks: the size of modules and functions, and that nothing of one machine is in the sources."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.timeout(300)
"""Each test parses 1,500 files: 5 s of computing, of which a loaded machine makes a minute."""

MODULE_LINES = 400
FUNCTION_LINES = 60
FILE_BYTES = 500_000
"""Largest file outside docs/pictures: every clone and every sdist carries it."""

DECLARATION_LINES = 10
"""Longest function of a module that only declares things."""

PYTHON = sorted(
    path
    for folder in ("zot", "zotd", "zotctl", "zottui", "tests", "benchmarks", "packaging", "scripts", "examples")
    for path in (ROOT / folder).rglob("*.py")
)
TEXTS = sorted(
    {
        *PYTHON,
        *(
            path
            for pattern in (
                ".ci/*",
                "*.md",
                "*.toml",
                "Makefile",
                "docs/**/*",
                "examples/**/*",
                "packaging/**/*",
                "systemd/*",
                "zotd/**/*.md",
                "tests/**/*.md",
            )
            for path in ROOT.glob(pattern)
            if path.is_file() and path.suffix != ".png"
        ),
    }
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


TESTS_OF_MANY = {
    "benchmarks": "the tasks that benchmarks give to agents",
    "attacks": "attackers, against all doors",
    "corpus": "frames that other implementations can run, against all doors",
    "e2e": "sessions in a daemon, through all layers",
    "e2e/foreign": "the same, with model servers that others wrote",
    "examples": "the programs in examples/",
    "exthost/install": "`exthost.install` and the modules that it uses",
    "faults": "the fault rig, and small runs of it",
    "packaging": "what is built from packaging/",
    "page": "the page in a browser",
    "providers/conformance": "every vendor of the catalog, through all layers",
    "service": "the daemon under systemd and launchd",
    "skills": "the skills that ship with the agent",
    "zottui/journeys": "the terminal client in tmux",
}
"""Directories of tests that belong to no single package."""

TESTED_BY = {
    "api/methods": "api",
    "api/page": "page",
    "batches": "e2e/test_batches.py",
    "config": "test_config.py",
    "exthost/validation": "zotctl/ext/test_validate.py",
    "logs": "test_logs.py",
    "providers/shared": "providers/test_streaming.py",
    "skills": "skills",
    "tools/shared": "tools/test_ignore.py",
}
"""Packages whose tests stand elsewhere."""


def test_the_tree_of_tests_mirrors_the_tree_of_code():
    """`zotd/store` is tested by `tests/store`, `zotd/api/websocket` by `tests/api/websocket`; a small package by one file."""
    packages = {
        path.parent.relative_to(ROOT)
        for root in ("zot", "zotd", "zotctl", "zottui")
        for path in (ROOT / root).rglob("*.py")
    }
    named = {package.as_posix().removeprefix("zotd").removeprefix("/") for package in packages} - {""}
    tests = ROOT / "tests"
    directories = {path.parent.relative_to(tests).as_posix() for path in tests.rglob("test_*.py")} - {"."}
    assert directories - named == set(TESTS_OF_MANY)
    by_file = {package for package in named if (tests / package).with_name(f"test_{Path(package).name}.py").exists()}
    assert named - directories - by_file - set(TESTED_BY) == set()
    assert [place for place in TESTED_BY.values() if not (tests / place).exists()] == []


SHARED_NAMES = {
    "BusyError": "public errors of two libraries: zotd.embed and zotd.client",
    "Client": "a client library's connection, and what hello says about a client",
    "Decision": "a record, and what a guard of the SDK returns",
    "Event": "the base of all events, the extension frame `event`, and what the SDK makes of it",
    "Finding": "what `zotctl doctor` prints, of the installation and of extensions",
    "Fork": "a command, and a row of its answer",
    "Hello": "the first frame of both protocols",
    "HelloAck": "a frame, and what the SDK makes of it",
    "Image": "a content block, and what the SDK makes of it",
    "Interrupted": "a record, and the event that shows it",
    "Message": "an entry of a transcript, and what a channel of the SDK receives",
    "OpenPanel": "a frame, and what the SDK makes of it",
    "Panel": "a frame, and what the SDK makes of it",
    "PanelClose": "a frame of both protocols",
    "PanelKey": "a frame of both protocols",
    "PanelResize": "a frame of both protocols",
    "Prompt": "a command, and what a slash command of the SDK returns",
    "ReplyReader": "each vendor's dialect has its own",
    "RequestWriter": "each vendor's dialect has its own",
    "Session": "the daemon's session, and a client library's handle for it",
    "Shutdown": "a frame of both protocols",
    "Subscribe": "a frame of both protocols",
    "ToolCall": "a content block, and a frame to an extension",
    "ToolProgress": "an event, and a frame from an extension",
    "ToolResult": "a content block, and a frame from an extension",
}
"""Public classes of the product that share a name, and why that helps: the same thing at both ends, or in two dialects."""


def test_a_class_name_means_one_thing():
    places: dict[str, list[str]] = {}
    for path in PYTHON:
        if path.relative_to(ROOT).parts[0] in {"zot", "zotd", "zotctl", "zottui"}:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places.setdefault(node.name, []).append(name(path))
    assert {found for found, modules in places.items() if len(modules) > 1} == set(SHARED_NAMES)


DATACLASSES = 24
"""Most that a daemon may load at its start; each takes 0.6 ms, a struct a twentieth (docs/decisions/0107)."""

COUNT_DATACLASSES = """
import dataclasses
make, made = dataclasses._process_class, []
dataclasses._process_class = lambda cls, *options: made.append(cls.__qualname__) or make(cls, *options)
import zotd.app
print(*made)
"""


def test_a_daemon_makes_few_dataclasses_at_its_start():
    ended = subprocess.run(
        [sys.executable, "-c", COUNT_DATACLASSES], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert 0 < len(ended.stdout.split()) <= DATACLASSES, ended.stdout


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


SANITIZERS = {"harmless", "one_line", "blanked", "escaped", "json_line"}
"""Of `zotd.sanitize`."""

FIGURES = {"number", "len", "round", "sum"}
"""What gives numbers."""

PRINTERS = {
    "zotctl/attach.py",
    "zotctl/ext/tap.py",
    "zotctl/log.py",
    "zotctl/output.py",
    "zotctl/top/live.py",
    "zotctl/top/screen.py",
    "zottui/plain/output.py",
}
"""They print what others have made harmless, and are surfaces of `tests/attacks/test_terminal_sequences.py`."""


def is_harmless(node: ast.expr) -> bool:
    """Whether an expression is a constant, or was made harmless, in each of its parts."""
    match node:
        case ast.Constant() | ast.Attribute(value=ast.Name(id="colour")):
            return True
        case ast.Subscript(value=ast.Name(id=table)) | ast.Name(id=table) if table.isupper():
            return True
        case ast.JoinedStr(values=parts) | ast.BoolOp(values=parts):
            return all(map(is_harmless, parts))
        case ast.FormattedValue(value=value, format_spec=spec):
            is_figure = isinstance(spec, ast.JoinedStr) and ast.unparse(spec).endswith(("d'", "f'", "g'"))
            return is_figure or is_harmless(value)
        case ast.BinOp(left=left, right=right):
            return is_harmless(left) and is_harmless(right)
        case ast.IfExp(body=body, orelse=other):
            return is_harmless(body) and is_harmless(other)
        case ast.Call(func=function, args=given):
            called = getattr(function, "id", getattr(function, "attr", ""))
            if ast.unparse(function) == "json.dumps":
                return "ensure_ascii" not in {keyword.arg for keyword in node.keywords}
            return called in SANITIZERS | FIGURES or (called == "painted" and all(map(is_harmless, given)))
        case _:
            return False


def printed(tree: ast.AST) -> Iterator[ast.Call]:
    """Calls of print, and of write of a standard stream."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name == "print" or re.fullmatch(r"sys\.std(out|err)\.write", name):
                yield node


def test_printed_text_is_constant_or_escaped():
    found = []
    for folder in ("zotctl", "zottui", "zotd/client", "zotd/embed", "zotd/bridges"):
        for path in (ROOT / folder).rglob("*.py"):
            if name(path) not in PRINTERS:
                calls = printed(ast.parse(path.read_text()))
                found += [
                    f"{name(path)}:{one.lineno}: {ast.unparse(one)}"
                    for one in calls
                    if not all(map(is_harmless, one.args))
                ]
    assert found == []
