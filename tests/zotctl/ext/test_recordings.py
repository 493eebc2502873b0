"""`zotctl ext record`, `replay` and `test`: the frames of an extension as its regression tests."""

import json
import os
import pty
import shutil
import signal
import sys
import textwrap
from pathlib import Path

import pytest

GREET = """
@ext.tool
def greet(name: str, call) -> str:
    "Greets."
    call.progress("looking")
    return f"Hello, {name}!"

@ext.command("where")
def where(args):
    import os
    return Display(f"{args} in {os.getcwd()}")
"""


class Workbench:
    """A directory with extensions and recordings, and commands that need no daemon."""

    def __init__(self, shell):
        self.shell = shell
        self.path = shell.home / "made"
        shell.env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), shell.env["PATH"]])

    def write(self, body, name="mine"):
        directory = self.path / name
        directory.mkdir(parents=True, exist_ok=True)
        manifest = {"name": name, "exec": "python3", "args": ["main.py"]}
        (directory / "extension.json").write_text(json.dumps(manifest))
        head = f"from zotd.sdk import *\next = Extension({name!r})\n"
        (directory / "main.py").write_text(head + textwrap.dedent(body) + "\next.run()\n")
        return directory

    def record(self, *frames, name="case", into="mine", ignore=(), head=None):
        """Write a recording by hand: `("host", frame)` or `("extension", frame)`."""
        lines = [head or {"type": "recording", "v": 1, "extension": into, "time": "x", "ignore": list(ignore)}]
        lines += [{"time": "x", "from": sender, "frame": frame} for sender, frame in frames]
        file = self.path / into / "recordings" / f"{name}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return file

    def replay(self, file, *flags):
        """The exit code, and what `--json` prints."""
        code, out, err = self.shell.zotctl("ext", "replay", str(file), "--json", *flags)
        assert out, err
        return code, json.loads(out)


@pytest.fixture
def bench(shell):
    return Workbench(shell)


def asked(key, tool, /, **args):
    return "host", {"type": "tool_call", "id": key, "name": tool, "args": args}


def answered(key, text, **fields):
    content = [{"type": "text", "text": text}]
    return "extension", {"type": "tool_result", "id": key, "content": content, "is_error": False, **fields}


def recorder(live, file, *flags):
    """A recorder that is at work."""
    terminal, other_side = pty.openpty()
    process = live.shell.start("zotctl", "ext", "record", "mine", str(file), *flags, stderr=other_side)
    os.close(other_side)
    said = b""
    while b"recording mine" not in said:
        said += os.read(terminal, 4096)
    return process, terminal


@pytest.mark.parametrize("flags", [["--restart"], []], ids=["with its start", "from the middle"])
def test_what_was_recorded_can_be_replayed_elsewhere_and_shows_what_has_changed(live, flags):
    directory = live.write("mine", GREET)
    session = live.session()
    live.until("mine", "ready")
    file = directory / "recordings" / "where.jsonl"
    process, terminal = recorder(live, file, *flags)
    with process:
        live.command(session, "where", "here")
        while "command_response" not in file.read_text():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(40) == 0
    os.close(terminal)
    assert str(live.cwd) not in file.read_text()
    assert str(directory) not in file.read_text()
    frames = [json.loads(line)["frame"]["type"] for line in file.read_text().splitlines()[1:]]
    assert frames[:2] == (["hello", "hello_ack"] if flags else ["command_invoked", "command_response"])
    live.daemon.end()
    moved = live.cwd / "moved"
    shutil.move(directory, moved)
    code, out, err = live.zotctl("ext", "test", str(moved))
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "1 of 1 recordings as before"
    source = moved / "main.py"
    source.write_text(source.read_text().replace("{args} in", "{args} at"))
    code, out, _ = live.zotctl("ext", "test", str(moved))
    assert code == 1
    changed = [line.strip() for line in out.splitlines() if line.strip()[:1] in {"-", "+"}]
    assert changed == ['-  "display": "here in {{extension_dir}}",', '+  "display": "here at {{extension_dir}}",']
    assert out.splitlines()[-1] == "0 of 1 recordings as before"


def test_differences_are_named_with_their_lines(bench):
    bench.write(GREET)
    good = [asked("1", "greet", name="Ada"), ("extension", {"type": "tool_progress", "id": "1", "text": "looking"})]
    assert bench.replay(bench.record(*good, answered("1", "Hello, Ada!")))[0] == 0
    code, found = bench.replay(bench.record(*good, answered("1", "Hi, Ada!")))
    (difference,) = found["differences"]
    assert (code, found["ok"], difference["about"], difference["line"]) == (1, False, "tool_result of greet", 4)
    assert difference["sent"]["content"][0]["text"] == "Hello, Ada!"
    _, found = bench.replay(bench.record(good[0], answered("1", "Hello, Ada!")))
    assert [(one["line"], one["recorded"], one["sent"]["type"]) for one in found["differences"]] == [
        (None, None, "tool_progress")
    ]


def test_the_order_of_answers_to_different_questions_does_not_count(bench):
    bench.write("@ext.tool\nasync def echo(text: str) -> str:\n    'Echo.'\n    return text\n")
    calls = [asked("1", "echo", text="one"), asked("2", "echo", text="two")]
    assert bench.replay(bench.record(*calls, answered("2", "two"), answered("1", "one")))[0] == 0


def test_times_and_random_ids_do_not_count_and_more_can_be_named(bench):
    bench.write(
        """
        import datetime, os, uuid
        @ext.tool
        def report() -> str:
            "Reports."
            return f"{datetime.datetime.now().isoformat()} {uuid.uuid4()} took {os.getpid()} ms"
        """
    )
    said = "2001-01-01T00:00:00.5 00000000-0000-4000-8000-000000000000 took 0 ms"
    frames = [asked("1", "report"), answered("1", said)]
    code, found = bench.replay(bench.record(*frames))
    assert (code, len(found["differences"])) == (1, 1)
    assert bench.replay(bench.record(*frames), "--ignore", r"\d+ ms")[0] == 0
    assert bench.replay(bench.record(*frames, ignore=[r"\d+ ms"]))[0] == 0


def test_calls_of_the_extension_get_their_recorded_answers_under_the_ids_of_today(bench):
    bench.write(
        """
        import json, sys, uuid
        def say(**frame):
            print(json.dumps(frame), file=sys.__stdout__, flush=True)
        say(type="hello", name="mine")
        say(type="ready")
        for line in sys.stdin:
            frame = json.loads(line)
            if frame["type"] == "tool_call":
                outer, own = frame["id"], uuid.uuid4().hex[:8]
                say(type="call_tool", id=own, name="read", args={"path": "a"})
            elif frame["type"] == "tool_result" and frame["id"] == own:
                say(type="tool_result", id=outer, content=frame["content"])
            elif frame["type"] == "shutdown":
                break
        sys.exit()
        """
    )
    file = bench.record(
        asked("1", "any"),
        ("extension", {"type": "call_tool", "id": "old", "name": "read", "args": {"path": "a"}}),
        ("host", {"type": "tool_result", "id": "old", "content": [{"type": "text", "text": "read"}]}),
        ("extension", {"type": "tool_result", "id": "1", "content": [{"type": "text", "text": "read"}]}),
    )
    assert bench.replay(file) == (0, {"v": 1, "file": str(file), "ok": True, "frames": 2, **NOTHING})


NOTHING = {"differences": [], "failure": "", "stderr": ""}


def test_an_extension_that_dies_or_falls_silent_is_told(bench):
    bench.write(
        """
        @ext.tool
        def die():
            "Dies."
            import os; os._exit(7)

        @ext.tool
        def wait():
            "Waits."
            import threading; threading.Event().wait()
        """
    )
    code, found = bench.replay(bench.record(asked("1", "die"), answered("1", "x")))
    assert (code, found["failure"]) == (1, "exited with code 7")
    assert [one["sent"] for one in found["differences"]] == [None]
    code, found = bench.replay(
        bench.record(asked("1", "wait"), answered("1", "x"), asked("2", "wait")), "--timeout", "1"
    )
    assert (code, found["failure"]) == (1, "sent 0 of 1 frames before line 4, and no more within 1 s")


def test_python_modules_are_replayed_from_the_directory_with_their_tools(bench):
    tools = bench.path / "mine" / "tools"
    tools.mkdir(parents=True)
    (tools / "double.py").write_text("def run(x: int) -> int:\n    'Doubles.'\n    return 2 * x\n")
    bench.record(asked("1", "double", x=4), answered("1", "8"))
    assert bench.shell.zotctl("ext", "test", str(bench.path / "mine"))[0] == 0


BAD: dict[str, str | bytes] = {
    "does not begin with the first line of a recording": "",
    "has the version 2, and this program reads 1": '{"type":"recording","v":2}',
    "has no frame in line 2": '{"type":"recording","v":1}\n{"from":"host"}',
    "in line 3 that was longer than 64 KiB": '{"type":"recording","v":1}\n\n{"from":"host","text":"{","cut":9}',
    "which is no regular expression": '{"type":"recording","v":1,"ignore":["("]}',
    "is not UTF-8": b"\xff",
}


@pytest.mark.parametrize("reason", BAD)
def test_a_file_that_is_no_recording_is_refused(bench, reason):
    bench.write(GREET)
    file = bench.record()
    content = BAD[reason]
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    code, out, err = bench.shell.zotctl("ext", "replay", str(file))
    assert (code, out) == (1, "")
    assert err.startswith(f"zotctl: {file} ")
    assert reason in err
    assert err.count("\n") == 1


def test_what_is_missing_is_named(bench, live):
    bench.write(GREET)
    (bench.path / "lost.jsonl").write_text('{"type":"recording","v":1}\n')
    for args, told in {
        ("test", str(bench.path / "mine")): "there is no recording in ",
        ("replay", str(bench.path / "lost.jsonl")): "is not in the directory of an extension; name it with --extension",
        ("replay", str(bench.path / "none.jsonl"), "--extension", str(bench.path / "mine")): "cannot be read: ",
        ("record", "nobody", str(bench.path / "new.jsonl")): "no extension nobody is running here",
    }.items():
        code, _, err = live.zotctl("ext", *args)
        assert (code, told in err) == (1, True), err
    assert not (bench.path / "new.jsonl").exists()
    live.write("mine", GREET)
    live.session()
    live.until("mine", "ready")
    code, _, err = live.zotctl("ext", "record", "mine", str(bench.path / "lost.jsonl"))
    assert (code, "exists; choose another name" in err) == (1, True)
