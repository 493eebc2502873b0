"""`zotctl ext validate`: conforming extensions pass, and each fault is reported under the rule that it breaks."""

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import zotd
from tests.e2e.shop import PROGRAMS
from tests.needs import needs
from zotd.exthost.host import ExtensionTimeouts
from zotd.exthost.manifest import FILE
from zotd.exthost.validation import RULES, Calling, Verdict, validate
from zotd.testing.misbehaviours import MISBEHAVIOURS, PROGRAM

ROOT = Path(zotd.__file__).parent.parent
EXAMPLES = ROOT / "examples" / "extensions"
ENV = {
    **os.environ,
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    "PYTHONPATH": str(ROOT),
}
PATIENT = ExtensionTimeouts(tool_s=10, command_s=10, intercept_s=10)
IMPATIENT = ExtensionTimeouts(tool_s=1, command_s=1, intercept_s=1)
"""For extensions that do not answer."""

CAUGHT = {
    "no such program": {"start": "could not be started: /nowhere/at/all: no such file"},
    "registers first": {"hello": "began with `register_tool` instead of `hello`"},
    "nameless": {"hello": "sent a hello without a name"},
    "exits": {"hello": "exited with code 3: ModuleNotFoundError: No module named 'weather'"},
    "another name": {"name": 'calls itself "impostor"'},
    "leaves": {"stays": "when it was ready, it exited with code 0"},
    "closes stdout": {"stays": "closed its stdout without exiting"},
    "noise": {"stdout": "wrote a line that is not a frame"},
    "bad frames": {"frames": 'unknown frame type "teleport"', "stdout": "wrote a line that is not a frame"},
    "bad tools": {"tools": 'the tool "two words" is refused', "frames": "bad frame `register_tool`"},
    "answers nothing": {"calls": "did not answer within 1 s"},
    "dies in a call": {"calls": "exited with code 5: out of luck"},
    "answers garbage": {"calls": 'shown as [unknown block type "hologram"'},
    "answers twice": {"answers": "that nothing had asked for, or that were given before"},
    "deaf guard": {"guards": "asked about `tool_call`: it did not answer within 1 s", "calls": "did not answer"},
    "guard that dies": {"guards": "exited with code 9", "calls": "exited with code 9"},
    "stubborn": {"shutdown": "was still there 2 s after `shutdown`", "end of input": "was still there 2 s after"},
}
"""Misbehaviours of `zotd.testing`, with the rules that each breaks and the report."""


class Extensions:
    def __init__(self, path):
        self.path = path

    def install(self, name, argv, **fields):
        directory = self.path / name
        directory.mkdir()
        manifest = {"name": name, "exec": argv[0], "args": argv[1:], **fields}
        (directory / FILE).write_text(json.dumps(manifest))
        return directory

    def polite(self, source):
        """A polite extension `odd` that can be given a fault: `receive` gets each frame, with the program of fakes."""
        head = f"import sys; sys.path.insert(0, {str(Path(PROGRAM).parent)!r}); sys.argv[1:] = ['odd']\n"
        directory = self.install("odd", [sys.executable, "-I", "-S", "main.py"])
        (directory / "main.py").write_text(head + "from hostile import *\n" + dedent(source))
        return directory


@pytest.fixture
def extensions(tmp_path):
    return Extensions(tmp_path)


async def check(directory, calling=None, limits=PATIENT):
    cwd = directory if directory.is_dir() else directory.parent
    return await validate(directory, env=ENV, cwd=str(cwd), calling=calling, limits=limits)


def broken(report):
    return {one.rule: one.sentence for one in report.findings if one.verdict is Verdict.BROKEN}


def verdicts(report):
    return {one.rule: one.verdict for one in report.findings}


@pytest.mark.parametrize("name", ["hello", "hello-py", "clock", "weather", "guard", "todo"])
async def test_the_examples_keep_every_rule(tmp_path, name):
    needs(*PROGRAMS.get(name, ()))
    directory = tmp_path / name
    shutil.copytree(EXAMPLES / name, directory, ignore=shutil.ignore_patterns("__pycache__"))
    before = sorted(path.name for path in directory.rglob("*"))

    report = await check(directory)

    assert broken(report) == {}
    assert report.is_ok
    assert [one.rule for one in report.findings] == list(RULES)
    after = sorted(path.name for path in directory.rglob("*") if path.name != "__pycache__" and path.suffix != ".pyc")
    assert after == before


async def test_validate_reports_each_fault_under_its_rule(tmp_path):
    found = {}

    async def examine(bad):
        (tmp_path / bad.id).mkdir()
        directory = Extensions(tmp_path / bad.id).install(bad.name, list(bad.argv))
        report = await check(directory, Calling(), IMPATIENT)
        found[bad.id] = {} if report.is_ok else broken(report)

    async with asyncio.TaskGroup() as tasks:  # most of the time is spent waiting for answers that do not come
        for bad in MISBEHAVIOURS:
            if bad.id in CAUGHT:
                tasks.create_task(examine(bad), name=bad.id)
    for id_, caught in CAUGHT.items():
        assert found[id_].keys() == caught.keys(), id_
        assert [rule for rule, told in caught.items() if told not in found[id_][rule]] == [], id_


async def test_validate_warns_about_a_type_hint_without_a_schema(tmp_path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "odd.py").write_text("def run(x: list[complex], y: int):\n    'Odd.'\n    return repr(x)\n")

    report = await check(tmp_path)

    told = "the tool odd, parameter x: the type hint complex cannot be described; the model may send anything"
    assert [one.sentence for one in report.findings if one.verdict is Verdict.DOUBTFUL] == [told]
    assert report.is_ok


async def test_validate_marks_unreached_rules_as_unchecked(extensions):
    bad = next(bad for bad in MISBEHAVIOURS if bad.id == "exits")
    report = await check(extensions.install(bad.name, list(bad.argv)))
    found = verdicts(report)
    assert found["start"] == "kept"
    assert found["shutdown"] == found["children"] == "unchecked"
    assert report.stderr.endswith("ModuleNotFoundError: No module named 'weather'\n")


async def test_validate_reports_a_crash_on_an_unknown_frame(extensions):
    directory = extensions.polite("""
        greet()
        for frame in frames():
            {"tool_call": answer, "command_invoked": answer, "event": id}[frame["type"]](frame)
    """)
    found = broken(await check(directory))
    assert found.keys() == {"unknown"}
    assert "KeyError: 'of_a_newer_zot'" in found["unknown"]


async def test_validate_reports_an_exit_on_an_unknown_frame(extensions):
    directory = extensions.polite("""
        greet()
        next((frame for frame in frames() if frame["type"] == "of_a_newer_zot"), None)
    """)
    assert broken(await check(directory)) == {"unknown": "it exited with code 0"}


async def test_validate_reports_splitting_at_other_line_breaks(extensions):
    directory = extensions.polite("""
        greet()
        for line in sys.stdin:
            for part in line.splitlines():
                if json.loads(part)["type"] == "shutdown":
                    sys.exit()
    """)
    found = broken(await check(directory))
    assert found.keys() == {"unicode"}
    assert "JSONDecodeError" in found["unicode"]


async def test_validate_reports_frames_lost_by_splitting_at_other_line_breaks(extensions):
    directory = extensions.polite("""
        hello()
        say({"type": "subscribe", "intercept": ["tool_call"]})
        say({"type": "ready"})
        for line in sys.stdin:
            for part in line.splitlines():
                try:
                    frame = json.loads(part)
                except ValueError:
                    continue
                if frame["type"] == "event_intercept":
                    answer(frame)
                elif frame["type"] == "shutdown":
                    sys.exit()
    """)
    found = broken(await check(directory, limits=IMPATIENT))
    assert found == {"unicode": "asked about `tool_call`: it did not answer within 1 s"}


async def test_validate_reports_a_crash_on_an_event(extensions):
    directory = extensions.polite("""
        greet()
        for frame in frames():
            if frame.get("event") == "turn_start":
                1 // 0
    """)
    found = broken(await check(directory))
    assert found.keys() == {"events"}
    assert "ZeroDivisionError" in found["events"]


async def test_validate_reports_a_failing_exit_after_an_event(extensions):
    directory = extensions.polite("""
        greet()
        sys.exit(any([frame["type"] == "event" for frame in frames()]))
    """)
    assert broken(await check(directory)) == {"events": "it exited with code 1"}


async def test_validate_reports_unknown_events_and_suggests_the_correct_name(extensions):
    directory = extensions.polite("""
        greet()
        say({"type": "subscribe", "events": ["turnend"], "intercept": ["rain"]})
        greet()
        serve()
    """)
    sentence = 'these events cannot be intercepted: rain; there is no event "turnend"; did you mean turn_end?'
    assert broken(await check(directory)) == {"subscriptions": sentence}


async def test_tools_and_commands_are_described_and_have_names_of_their_own(extensions):
    directory = extensions.polite("""
        hello()
        say({"type": "register_tool", "name": "read", "description": "reads", "schema": {}})
        say({"type": "register_tool", "name": "dumb", "schema": {}})
        say({"type": "register_command", "name": "dumb"})
        say({"type": "ready"})
        serve()
    """)
    found = broken(await check(directory))
    assert found == {
        "tools": 'the tool "read" is hidden by the built-in one; '
        'the tool "dumb" has no description, so no model knows what it is for',
        "commands": 'the command "dumb" has no description, so users cannot know what it is for',
    }


async def test_validate_reports_an_extension_that_handles_one_call_at_a_time(extensions):
    directory = extensions.polite("""
        hello()
        say({"type": "subscribe", "intercept": ["tool_call"]})
        say({"type": "ready"})
        while data := os.read(0, 65536):
            frame = json.loads(data.split(b"\\n")[0])
            if frame["type"] == "event_intercept":
                while select.select([0], [], [], 0.2)[0] and os.read(0, 65536):
                    pass  # what comes while it works is lost
                answer(frame)
    """)
    found = broken(await check(directory, limits=IMPATIENT))
    assert "did not answer within 1 s" in found["at once"]


async def test_validate_reports_an_extension_that_exits_on_a_cancelled_call(extensions):
    directory = extensions.polite("""
        hello(capabilities=["tool_cancel"])
        say({"type": "ready"})
        open_calls = {}
        for frame in frames():
            if frame["type"] == "tool_cancel":
                del open_calls[frame["id"]]
    """)
    found = broken(await check(directory))
    assert found.keys() == {"cancel"}
    assert "KeyError" in found["cancel"]


async def test_validate_reports_and_kills_children_that_outlive_the_extension(extensions):
    directory = extensions.polite("""
        subprocess.Popen(["sleep", "1000"])
        greet()
        serve()
    """)
    found = broken(await check(directory))
    assert found == {"children": "it left a process behind, which zot kills: sleep 1000"}


async def test_an_extension_that_never_says_ready_is_not_wrong(extensions):
    report = await check(extensions.polite("hello(); serve()"))
    assert broken(report) == {}
    assert verdicts(report)["ready"] == "unchecked"


WRITER = """
    greet()
    def write_down(frame):
        open("called", "a").write(frame["type"] + "\\n")
        answer(frame)
    serve(write_down)
"""


async def test_tools_and_commands_are_left_alone_unless_calls_are_allowed(extensions):
    directory = extensions.polite(WRITER)
    report = await check(directory)
    assert verdicts(report)["calls"] == "unchecked"
    assert not (directory / "called").exists()

    report = await check(directory, Calling())
    assert verdicts(report)["calls"] == "kept"
    assert set((directory / "called").read_text().split()) == {"tool_call", "command_invoked"}


async def test_a_single_tool_can_be_called_and_must_then_not_fail(extensions):
    directory = extensions.polite("""
        greet()
        serve(lambda frame: say(result(frame, is_error=frame["args"] != {"city": "Berlin"})))
    """)
    assert (await check(directory, Calling("odd", {"city": "Berlin"}))).is_ok
    found = broken(await check(directory, Calling("odd", {"city": "Ys"})))
    assert found == {"calls": 'odd {"city": "Ys"}: it failed: {"city": "Ys"}'}
    found = broken(await check(directory, Calling("even")))
    assert found == {"calls": 'it has no tool "even"; its tools: odd'}


async def test_validate_reports_an_invalid_manifest_without_starting_it(extensions):
    directory = extensions.install("odd", ["touch", "started"], permissions=["all"])
    report = await check(directory)
    assert broken(report).keys() == {"manifest"}
    assert "`permissions` is reserved for later versions" in broken(report)["manifest"]
    assert not (directory / "started").exists()


@pytest.mark.parametrize("path", [".", "tools", "tools/count.py"])
async def test_python_modules_are_checked_in_their_host_program(tmp_path, path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "count.py").write_text(
        'async def run(text: str) -> int:\n    "Count."\n    return len(text)\n'
    )
    report = await check(tmp_path / path, Calling("count", {"text": "four"}))
    assert broken(report) == {}
    assert {one.rule: one.sentence for one in report.findings}["tools"] == "count"


async def test_a_python_module_that_cannot_be_loaded_is_named(tmp_path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "good.py").write_text('def run():\n    "Good."\n')
    (tmp_path / "tools" / "bad.py").write_text("def run(:\n")
    found = broken(await check(tmp_path))
    assert found == {"tools": "bad.py: SyntaxError: invalid syntax (line 1)"}


async def test_validate_names_the_missing_manifest(tmp_path):
    found = broken(await check(tmp_path))
    assert found.keys() == {"manifest"}
    assert found["manifest"].startswith("there is neither ")


def test_the_command_prints_a_table_and_fails_when_a_rule_is_broken(shell, extensions):
    good = extensions.install("good", [sys.executable, "-I", "-S", PROGRAM, "good", "good"])
    code, out, err = shell.zotctl("ext", "validate", str(good))
    rows = [line.split(maxsplit=2) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert len(rows) == 1 + len(RULES)
    assert rows[1][:2] == ["✓", "manifest"]
    assert ["\N{EN DASH}", "calls", "not checked, for they may do real work; --call allows it"] in rows

    bad = extensions.install("bad", ["sh", "-c", "printf 'usage: \\033[2Jme FILE\\n' >&2; exit 2"])
    code, out, err = shell.zot("ext", "validate", str(bad))
    assert code == 1
    assert ["✗", "hello", "it exited with code 2: usage: ^[[2Jme FILE"] in [
        line.split(maxsplit=2) for line in out.splitlines()
    ]
    assert err == "\nlast lines of its stderr:\nusage: ^[[2Jme FILE\n"


def test_the_command_speaks_json(shell, extensions):
    bad = extensions.install("bad", ["sh", "-c", "exit 2"])
    code, out, err = shell.zotctl("ext", "validate", str(bad), "--json")
    report = json.loads(out)
    assert (code, err, report["v"], report["name"], report["ok"]) == (1, "", 1, "bad", False)
    assert [one["rule"] for one in report["findings"]] == list(RULES)
    assert {
        "rule": "hello",
        "about": RULES["hello"],
        "verdict": "broken",
        "sentence": "it exited with code 2",
    } in report["findings"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--args", "{}"], "--args needs a tool: --call TOOL --args JSON"),
        (["--call", "--args", "{}"], "--args needs a tool: --call TOOL --args JSON"),
        (["--call", "x", "--args", "["], "--args is not valid JSON: "),
        (["--call", "x", "--args", "[]"], "--args is not a JSON object"),
    ],
)
def test_validate_refuses_invalid_arguments(shell, arguments, told):
    code, out, err = shell.zotctl("ext", "validate", ".", *arguments)
    assert (code, out) == (1, "")
    assert err.startswith(f"zotctl: {told}")
