"""Several calls at once, one after another where asked for, and calls that are cancelled."""

from zotd.testing.ext_driver import text_of


def test_calls_run_beside_each_other(start):
    driver = start("""
        meeting = threading.Barrier(3)

        @ext.tool
        def meet():
            return meeting.wait(5)

        @ext.tool
        async def meet_too():
            return await asyncio.to_thread(meeting.wait, 5)
        """)

    ids = [driver.request("tool_call", name=name, args={}) for name in ("meet", "meet", "meet_too")]

    assert sorted(text_of(driver.expect("tool_result", id=call_id)) for call_id in ids) == ["0", "1", "2"]


def test_calls_of_a_tool_that_is_not_parallel_run_one_after_another(start_program):
    driver = start_program(
        python="""
            inside = []

            @ext.tool(parallel=False)
            def plain(number: int):
                inside.append(number)
                time.sleep(0.01)
                seen = list(inside)
                inside.remove(number)
                return seen

            @ext.tool(parallel=False)
            async def coroutine(number: int):
                inside.append(number)
                await asyncio.sleep(0.01)
                seen = list(inside)
                inside.remove(number)
                return seen
            """,
        typescript="""
            const inside = [];
            for (const name of ["plain", "coroutine"]) {
              ext.tool(name, { description: "", args: { number: arg.integer() }, parallel: false }, async ({ number }) => {
                inside.push(number);
                await sleep(10);
                const seen = [...inside];
                inside.splice(inside.indexOf(number), 1);
                return seen;
              });
            }
            """,
    )

    for tool in ("plain", "coroutine"):
        ids = [driver.request("tool_call", name=tool, args={"number": number}) for number in range(5)]
        answers = [driver.receive() for _ in ids]
        assert [answer["id"] for answer in answers] == ids
        assert [text_of(answer) for answer in answers] == ["[0]", "[1]", "[2]", "[3]", "[4]"]


def test_a_handler_that_hangs_keeps_no_other_from_answering(start_program):
    driver = start_program(
        python="""
            @ext.tool
            def hang():
                threading.Event().wait()

            @ext.tool
            def answer():
                return "here"
            """,
        typescript="""
            ext.tool("hang", { description: "" }, () => new Promise(() => {}));
            ext.tool("answer", { description: "" }, () => "here");
            """,
    )

    for _ in range(40):
        driver.request("tool_call", name="hang", args={})

    assert text_of(driver.call_tool("answer")) == "here"


def test_a_handler_that_takes_call_sees_that_it_is_cancelled(start_program):
    driver = start_program(
        python="""
            @ext.tool
            def plain(call):
                call.progress("here")
                while not call.cancelled:
                    time.sleep(0.001)
                return "stopped"

            @ext.tool
            async def coroutine(call):
                call.progress("here")
                while not call.cancelled:
                    await asyncio.sleep(0.001)
                return "stopped"
            """,
        typescript="""
            ext.tool("plain", { description: "" }, async (_, call) => {
              call.progress("here");
              while (!call.cancelled) await sleep(1);
              return "stopped";
            });
            ext.tool("coroutine", { description: "" }, async (_, call) => {
              call.progress("here");
              await new Promise((resolve) => call.signal.addEventListener("abort", resolve));
              return "stopped";
            });
            """,
    )

    for tool in ("plain", "coroutine"):
        call_id = driver.request("tool_call", name=tool, args={})
        driver.expect("tool_progress", id=call_id)
        driver.send("tool_cancel", id=call_id)
        assert text_of(driver.expect("tool_result", id=call_id)) == "stopped"


def test_a_coroutine_that_does_not_take_call_is_cancelled(start_program):
    driver = start_program(
        python="""
            @ext.tool
            async def sleep():
                ext.notify("info", "asleep")
                try:
                    await asyncio.sleep(100)
                finally:
                    ext.notify("info", "cleaned up")
            """,
        typescript="""
            ext.tool("sleep", { description: "" }, async (_, { signal }) => {
              ext.notify("info", "asleep");
              try {
                await sleep(100_000, undefined, { signal });
              } finally {
                ext.notify("info", "cleaned up");
              }
            });
            """,
    )
    call_id = driver.request("tool_call", name="sleep", args={})
    driver.expect("notify", message="asleep")

    driver.send("tool_cancel", id=call_id)

    driver.expect("notify", message="cleaned up")
    assert text_of(driver.expect("tool_result", id=call_id)) == "cancelled"


def test_a_call_that_waits_for_its_turn_can_be_cancelled(start_program):
    driver = start_program(
        python="""
            go = threading.Event()

            @ext.tool(parallel=False)
            def wait(call):
                call.progress("here")
                go.wait(5)
                return "waited"

            @ext.tool
            def release():
                go.set()
            """,
        typescript="""
            let go;
            const gone = new Promise((resolve) => { go = resolve; });
            ext.tool("wait", { description: "", parallel: false }, async (_, call) => {
              call.progress("here");
              await gone;
              return "waited";
            });
            ext.tool("release", { description: "" }, () => go());
            """,
    )
    first = driver.request("tool_call", name="wait", args={})
    driver.expect("tool_progress", id=first)
    second = driver.request("tool_call", name="wait", args={})
    driver.send("tool_cancel", id=second)

    driver.call_tool("release")

    assert text_of(driver.expect("tool_result", id=first)) == "waited"
    assert text_of(driver.expect("tool_result", id=second)) == "cancelled before it began"
    assert driver.shut_down() == 0
    assert [frame["type"] for frame in driver.rest()] == ["shutdown_ack"]
