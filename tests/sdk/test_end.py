"""What becomes of handlers when the host ends the extension."""

from zotd.testing.ext_driver import text_of


def test_at_shutdown_a_handler_may_finish(start_program):
    driver = start_program(
        python="""
            @ext.tool
            async def slow(call):
                call.progress("here")
                await asyncio.sleep(0.2)
                return "done"
            """,
        typescript="""
            ext.tool("slow", { description: "" }, async (_, call) => {
              call.progress("here");
              await sleep(200);
              return "done";
            });
            """,
    )
    call_id = driver.request("tool_call", name="slow", args={})
    driver.expect("tool_progress")

    assert driver.shut_down() == 0

    result, ack = driver.rest()
    assert result["id"] == call_id
    assert text_of(result) == "done"
    assert ack == {"type": "shutdown_ack"}


UNFINISHED = {
    "python": """
        @ext.tool
        def thread(call):
            call.progress("here")
            threading.Event().wait()

        @ext.tool
        async def coroutine(call):
            call.progress("here")
            try:
                await asyncio.sleep(1000)
            finally:
                ext.log("last words")

        @ext.tool
        async def library(call):
            call.progress("here")
            await asyncio.to_thread(threading.Event().wait)

        @ext.guard("tool_call")
        async def stubborn(event):
            ext.notify("info", "here")
            while True:
                try:
                    await asyncio.sleep(1000)
                except asyncio.CancelledError:
                    pass
        """,
    "typescript": """
        const hang = (call) => {
          call.progress("here");
          return new Promise(() => {});
        };
        ext.tool("thread", { description: "" }, (_, call) => hang(call));
        ext.tool("coroutine", { description: "" }, async (_, call) => {
          call.progress("here");
          await sleep(1_000_000, undefined, { signal: call.signal }).finally(() => ext.log("last words"));
        });
        ext.tool("library", { description: "" }, (_, call) => hang(call));
        ext.guard("tool_call", async () => {
          ext.notify("info", "here");
          setInterval(() => {}, 1000);
          await new Promise(() => {});
        });
        """,
}
"""Its programs, in both languages."""


def test_a_handler_that_does_not_finish_is_answered_for_and_left_behind(start_program):
    driver = start_program(**UNFINISHED)
    ids = {driver.request("tool_call", name=name, args={}) for name in ("thread", "coroutine", "library")}
    ids.add(driver.request("event_intercept", event="tool_call"))
    for _ in ids:
        driver.receive()

    assert driver.shut_down() == 0

    *answers, ack = driver.rest()
    assert {answer["id"] for answer in answers} == ids
    assert len(answers) == len(ids)
    assert ack == {"type": "shutdown_ack"}
    assert {text_of(answer) for answer in answers if answer["type"] == "tool_result"} == {
        "the extension was stopped before it had an answer"
    }
    assert "last words" in driver.log()


def test_a_call_that_waits_for_an_on_hello_that_hangs_is_answered_for(launch_program):
    driver = launch_program(
        python="""
            @ext.on_hello
            def hello():
                ext.notify("info", "here")
                threading.Event().wait()

            @ext.tool
            def tool():
                threading.Event().wait()
            """,
        typescript="""
            ext.onHello(() => {
              ext.notify("info", "here");
              return new Promise(() => {});
            });
            ext.tool("tool", { description: "" }, () => new Promise(() => {}));
            """,
    )
    driver.send("hello_ack")
    driver.expect("notify")
    driver.request("tool_call", name="tool", args={})

    assert driver.shut_down() == 0

    assert [frame["id"] for frame in driver.rest() if frame["type"] == "tool_result"] == ["1"]


def test_the_end_of_stdin_ends_the_extension(start_program):
    driver = start_program(
        python="""
            @ext.tool
            async def slow():
                await asyncio.sleep(0.05)
                return "done"
            """,
        typescript="""
            ext.tool("slow", { description: "" }, async () => {
              await sleep(50);
              return "done";
            });
            """,
    )
    driver.request("tool_call", name="slow", args={})

    driver.close_stdin()

    assert driver.end() == 0
    assert [frame["type"] for frame in driver.rest()] == ["tool_result"]


def test_tasks_that_the_author_left_running_are_cancelled_at_the_end(start):
    driver = start("""
        tasks = []

        async def background():
            try:
                await asyncio.sleep(1000)
            finally:
                ext.log("background ended")

        @ext.tool
        async def begin():
            tasks.append(asyncio.create_task(background()))
        """)
    driver.call_tool("begin")

    assert driver.shut_down() == 0
    assert "background ended" in driver.log()
    assert "never retrieved" not in driver.log()


def test_what_follows_run_is_executed_at_the_end(launch, write):
    write("after.py", "import atexit\natexit.register(print, 'farewell')")
    driver = launch("import after")
    driver.greet()

    assert driver.shut_down() == 0
    assert "farewell" in driver.log()
