"""From hello to the end of the process; `test_end.py` has the handlers that are still running at the end."""

import json
import subprocess
import sys
from pathlib import Path

import zotd
from zotd.testing.ext_driver import text_of
from zotd.wire import ext as wire


def test_hello_is_first_and_ready_comes_after_the_registrations(launch_program):
    driver = launch_program(
        python="""
            ext.notify("info", "early")

            @ext.tool
            async def tool(): ...

            @ext.command("command")
            def command(): ...
            """,
        typescript="""
            ext.notify("info", "early");
            ext.tool("tool", { description: "" }, async () => {});
            ext.command("command", "", () => {});
            """,
    )

    frames = [driver.receive() for _ in range(5)]

    assert frames[0]["name"] == "mine"
    assert frames[0]["version"] == "1.2"
    assert {"commands", "tools", "tool_cancel", "tool_progress", "call_tool", "ui"} <= set(frames[0]["capabilities"])
    assert [frame["type"] for frame in frames] == ["hello", "notify", "register_tool", "register_command", "ready"]


def test_what_on_hello_sets_up_is_there_before_any_call_is_handled(launch_program):
    driver = launch_program(
        python="""
            state = {}

            @ext.tool
            def look():
                return state["cwd"]

            @ext.on_hello
            async def hello(host):
                await asyncio.sleep(0.05)
                state["cwd"] = host.cwd
                ext.tool(name="late")(look)
                ext.log(f"{host.provider} {host.model} {host.extension_dir} {host.data_dir} {host.features}")
            """,
        typescript="""
            const state = {};
            const look = () => state.cwd;
            ext.tool("look", { description: "" }, look);
            ext.onHello(async (host) => {
              await sleep(50);
              state.cwd = host.cwd;
              ext.tool("late", { description: "" }, look);
              ext.log(`${host.provider} ${host.model} ${host.extension_dir} ${host.data_dir} ['${host.features}']`);
            });
            """,
    )
    driver.send("hello_ack", provider="p", model="m", cwd="/w", extension_dir="/e", data_dir="/d", features=["f"])
    driver.send("tool_call", id="1", name="late", args={})
    driver.send("event_intercept", id="2", event="tool_call")

    driver.expect("hello")
    assert [driver.receive()["type"] for _ in range(3)] == ["register_tool", "register_tool", "ready"]
    assert text_of(driver.expect("tool_result", id="1")) == "/w"
    driver.expect("event_intercept_response", id="2")
    assert "p m /e /d ['f']" in driver.log()


def test_an_on_hello_that_raises_leaves_the_extension_at_work(start_program):
    driver = start_program(
        python="""
            @ext.on_hello
            def hello():
                raise RuntimeError("no database")

            @ext.tool
            def tool():
                return ext.hello.cwd
            """,
        typescript="""
            ext.onHello(() => { throw new Error("no database"); });
            ext.tool("tool", { description: "" }, () => ext.hello.cwd);
            """,
    )

    assert text_of(driver.call_tool("tool")) == "/"
    assert "no database" in driver.log()


def test_stdout_and_stdin_belong_to_the_protocol(start):
    driver = start("""
        import subprocess
        print("while it is imported")

        @ext.tool
        def noisy():
            print("printed")
            os.write(1, b"written\\n")
            subprocess.run(["sh", "-c", "echo from a child; cat"])
            return sys.stdin.read()
        """)

    assert text_of(driver.call_tool("noisy")) == ""
    assert text_of(driver.call_tool("noisy")) == ""
    for line in ("while it is imported", "printed", "written", "from a child"):
        assert line in driver.log()


def test_what_cannot_be_understood_is_skipped(start_program):
    driver = start_program(
        python="""
            @ext.tool
            def tool():
                return "here"
            """,
        typescript="""
            ext.tool("tool", { description: "" }, () => "here");
            """,
    )

    driver.send_line(b"")
    driver.send_line(b"no json")
    driver.send_line(b"[1]")
    driver.send_line(b"\xff\xfe")
    driver.send_line(b"[" * 100_000)
    driver.send("from_the_future", id="1")
    driver.send("from_the_future", id="2")
    driver.send("tool_cancel", id="unknown")
    driver.send("tool_result", id="unknown")
    driver.send("panel_key", panel_id="unknown", key="up")
    driver.send_line(b'{"type":"tool_call","id":"3","name":"tool","unknown":null}')

    assert text_of(driver.expect("tool_result", id="3")) == "here"
    assert driver.log().count("from_the_future") == 1
    assert driver.log().count("no JSON object") == 4


def test_by_hand_hello_ack_may_come_first_and_the_end_of_input_right_after_the_calls(write, tmp_path):
    write(
        "mine.py",
        """
        import asyncio
        from zotd.sdk import *
        ext = Extension("mine")

        @ext.tool
        async def one():
            await asyncio.sleep(0.01)
            return "one"

        @ext.command("two")
        def two(text):
            return text

        @ext.on("turn_end")
        def three():
            ext.notify("info", "three")

        ext.run()
        """,
    )
    frames = [
        {"type": "hello_ack", "protocol_version": 1, "zot_version": "x", "provider": "a", "model": "o", "cwd": "/tmp"},
        {"type": "tool_call", "id": "1", "name": "one", "args": {}},
        {"type": "command_invoked", "id": "2", "name": "two", "args": "two"},
        {"type": "event", "event": "turn_end", "stop": "end_turn"},
    ]
    text = "\n".join(map(json.dumps, frames))  # the last line without its line feed
    (tmp_path / "frames").write_text(text)
    environment = {"PYTHONPATH": str(Path(zotd.__file__).parent.parent), "PYTHONIOENCODING": "ascii"}

    def run(**stdin):
        ended = subprocess.run(
            [sys.executable, "mine.py"],
            cwd=tmp_path,
            capture_output=True,
            timeout=40,
            check=False,
            env=environment,
            **stdin,
        )
        assert (ended.returncode, ended.stderr) == (0, b"")
        return sorted(json.loads(line)["type"] for line in ended.stdout.splitlines())

    kinds = ["command_response", "hello", "notify", "ready", "register_command", "register_tool", "subscribe"]
    assert run(input=text.encode()) == [*kinds, "tool_result"]
    with (tmp_path / "frames").open() as file:
        assert run(stdin=file) == [*kinds, "tool_result"]
    assert run(stdin=subprocess.DEVNULL) == ["hello", "ready", "register_command", "register_tool", "subscribe"]


def test_a_host_that_reads_no_more_is_no_error(write, tmp_path):
    write(
        "mine.py",
        "from zotd.sdk import *\next = Extension('mine')\n@ext.command('x')\ndef x(): return 'x' * 100_000\next.run()",
    )
    process = subprocess.Popen(
        [sys.executable, "mine.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(zotd.__file__).parent.parent)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()

    _, log = process.communicate(b'{"type":"command_invoked","id":"1","name":"x","args":""}\n' * 3, timeout=40)

    assert process.returncode == 0
    assert log == b""


EVERY_FRAME = {
    "python": """
        panel = Panel("p", "Title", ["line"], footer="keys")

        @ext.tool(output_schema={"type": "object"}, namespace="n", exposure="direct", interactive=True)
        async def tool(call):
            call.progress("half")
            ext.call_tool("read", {"path": "x"}).cancel()
            return {"n": 1}

        @ext.command("c")
        def command():
            for level in ("info", "success", "warn", "error"):
                ext.notify(level, level)
            ext.clear_notes()
            ext.set_status("k", "t")
            ext.submit("x")
            ext.submit("/x")
            ext.open_panel(panel)
            panel.render(["x"])
            panel.close()
            ext.unregister("command", "c")
            return OpenPanel(panel)

        @ext.on("turn_end")
        @ext.guard("tool_call")
        def check(event):
            return Decision.args({})
        """,
    "typescript": """
        const panel = new Panel("p", { title: "Title", lines: ["line"], footer: "keys" });
        const told = { output_schema: { type: "object" }, namespace: "n", exposure: "direct", interactive: true };
        ext.tool("tool", { description: "", ...told }, async (_, call) => {
          call.progress("half");
          const enough = new AbortController();
          const asked = ext.callTool("read", { path: "x" }, { signal: enough.signal });
          enough.abort();
          await asked.catch(() => {});
          return { n: 1 };
        });
        ext.command("c", "", () => {
          for (const level of ["info", "success", "warn", "error"]) ext.notify(level, level);
          ext.clearNotes();
          ext.setStatus("k", "t");
          ext.submit("x");
          ext.submit("/x");
          ext.openPanel(panel);
          panel.render({ lines: ["x"] });
          panel.close();
          ext.unregister("command", "c");
          return new OpenPanel(panel);
        });
        ext.on("turn_end", () => {});
        ext.guard("tool_call", () => Decision.args({}));
        """,
}
"""Its programs, in both languages."""


def test_the_host_understands_every_frame(launch_program):
    driver = launch_program(**EVERY_FRAME)
    driver.request("tool_call", name="tool", args={}, session_id="s")
    driver.request("command_invoked", name="c", args="", session_id="s")
    driver.request("event_intercept", event="tool_call", tool_id="t", tool_name="bash", tool_args={})
    driver.shut_down()

    frames = driver.rest()

    read = [wire.read(json.dumps(frame).encode()) for frame in frames]
    assert [frame for frame in read if isinstance(frame, wire.Skipped)] == []
    assert {type(frame).__struct_config__.tag for frame in read} == {frame["type"] for frame in frames}
    assert len({frame["type"] for frame in frames}) == 21
