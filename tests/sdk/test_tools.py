"""Tools: how they are registered, called and answered."""

import json
import re

from zotd.testing.ext_driver import text_of


def test_a_function_is_a_tool_with_its_name_docstring_and_hints(start_program):
    driver = start_program(
        python="""
            @ext.tool
            async def weather(city: str, call) -> str:
                '''Current weather of a city.

                In words.
                '''
                return f"{city}: fog"
            """,
        typescript="""
            const told = { description: "Current weather of a city.\\n\\nIn words.", args: { city: arg.string() } };
            ext.tool("weather", told, async ({ city }) => `${city}: fog`);
            """,
    )

    assert driver.registrations == [
        {
            "type": "register_tool",
            "name": "weather",
            "description": "Current weather of a city.\n\nIn words.",
            "schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            "replay": "never",
            "parallel": True,
        }
    ]
    answer = driver.call_tool("weather", city="Köln\u2028")
    assert answer["content"] == [{"type": "text", "text": "Köln\u2028: fog"}]
    assert answer["is_error"] is False


def test_options_of_a_tool_are_told_to_the_host(start_program):
    driver = start_program(
        python="""
            schema = {"type": "object", "properties": {"anything": {}}}

            @ext.tool(name="other", description="does it", schema=schema, replay="safe", parallel=False, exposure="deferred")
            def tool(**arguments):
                return arguments
            """,
        typescript="""
            const schema = { type: "object", properties: { anything: {} } };
            const told = { description: "does it", schema, replay: "safe", parallel: false, exposure: "deferred" };
            ext.tool("other", told, (args) => args);
            """,
    )

    (frame,) = driver.registrations
    assert frame == {
        "type": "register_tool",
        "name": "other",
        "description": "does it",
        "schema": {"type": "object", "properties": {"anything": {}}},
        "replay": "safe",
        "parallel": False,
        "exposure": "deferred",
    }
    assert json.loads(text_of(driver.call_tool("other", anything=[1]))) == {"anything": [1]}


def test_an_unknown_option_is_refused_when_the_extension_starts(launch_program):
    driver = launch_program(
        python="ext.tool(concurrent=False)",
        typescript="""
            ext.tool("x", { description: "", concurrent: false }, () => {});
            """,
    )

    assert driver.rest() == []
    assert driver.end() == 1
    assert "a tool has no option concurrent" in driver.log()


def test_a_hint_that_is_not_supported_is_told_where_the_tool_is_defined(launch):
    driver = launch("@ext.tool\ndef odd(x: complex, call) -> str:\n    'Odd.'\n    return ''\n")

    assert driver.shut_down() == 0
    (line,) = driver.log().splitlines()
    assert line.startswith("the tool odd: parameter x has the hint complex, which JSON cannot express; hints are str, ")


RESULTS = {
    "python": """
        import dataclasses
        PNG = b"\\x89PNG\\r\\n\\x1a\\n..."

        @dataclasses.dataclass
        class Point:
            x: int

        RESULTS = {
            "text": "plain",
            "nothing": None,
            "number": 1.5,
            "object": {"ä": [1, None]},
            "dataclass": [Point(3)],
            "bytes": PNG,
            "image": Image.from_bytes(b"any", "image/webp"),
            "result": Result("two", images=[Image.from_bytes(PNG)], structured={"n": 2}, activate_tools=["more"]),
            "error": Result("sorry", is_error=True),
        }

        @ext.tool
        def give(kind: str):
            return RESULTS[kind]
        """,
    "typescript": """
        const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 46, 46, 46]);
        const results = {
          text: "plain",
          nothing: null,
          number: 1.5,
          object: { "ä": [1, null] },
          dataclass: [{ x: 3 }],
          bytes: png,
          image: Image.fromBytes(new TextEncoder().encode("any"), "image/webp"),
          result: new Result("two", { images: [Image.fromBytes(png)], structured: { n: 2 }, activate_tools: ["more"] }),
          error: new Result("sorry", { is_error: true }),
        };
        ext.tool("give", { description: "", args: { kind: arg.string() } }, ({ kind }) => results[kind]);
        """,
}
"""Its programs, in both languages."""


def test_every_kind_of_result_reaches_the_model(start_program):
    driver = start_program(**RESULTS)

    def give(kind):
        frame = driver.call_tool("give", kind=kind)
        del frame["type"], frame["id"]
        return frame

    def text(text):
        return {"content": [{"type": "text", "text": text}], "is_error": False}

    def json_of(kind):
        return json.loads(text_of(give(kind)))

    png = {"type": "image", "mime_type": "image/png", "data": "iVBORw0KGgouLi4="}
    assert give("text") == text("plain")
    assert give("nothing") == text("")
    assert give("number") == text("1.5")
    assert json_of("object") == {"ä": [1, None]}
    assert json_of("dataclass") == [{"x": 3}]
    assert give("bytes") == {"content": [png], "is_error": False}
    assert give("image") == {
        "content": [{"type": "image", "mime_type": "image/webp", "data": "YW55"}],
        "is_error": False,
    }
    assert give("result") == {
        "content": [{"type": "text", "text": "two"}, png],
        "is_error": False,
        "structured_content": {"n": 2},
        "activate_tools": ["more"],
    }
    assert give("error") == {"content": [{"type": "text", "text": "sorry"}], "is_error": True}


def test_a_tool_with_an_output_schema_gives_its_json_as_the_structured_result(start_program):
    driver = start_program(
        python="""
            @ext.tool(output_schema={"type": "object"})
            def count() -> dict:
                return {"n": 1}
            """,
        typescript="""
            ext.tool("count", { description: "", output_schema: { type: "object" } }, () => ({ n: 1 }));
            """,
    )

    answer = driver.call_tool("count")
    assert answer["structured_content"] == {"n": 1}
    assert json.loads(text_of(answer)) == {"n": 1}


FAILURES = {
    "python": """
        class Odd(Exception):
            def __str__(self):
                return ""

        FAILURES = {
            "raise": lambda: throw(ValueError("out of order")),
            "mute": lambda: throw(Odd()),
            "set": lambda: {1},
            "nan": lambda: Result(structured=float("nan")),
            "bytes": lambda: b"no image",
            "loop": lambda: (loop := [], loop.append(loop))[0],
            "large": lambda: "x" * 5_000_000,
        }

        def throw(error):
            raise error

        @ext.tool
        def plain(how: str):
            return FAILURES[how]()

        @ext.tool
        async def coroutine(how: str):
            return FAILURES[how]()

        @ext.tool
        def fine():
            return "fine"
        """,
    "typescript": """
        class Odd extends Error {}
        const loop = [];
        loop.push(loop);
        const failures = {
          raise: () => { throw new Error("out of order"); },
          mute: () => { throw new Odd(); },
          set: () => new Set([1]),
          nan: () => new Result("", { structured: NaN }),
          bytes: () => new TextEncoder().encode("no image"),
          loop: () => loop,
          large: () => "x".repeat(5_000_000),
        };
        ext.tool("plain", { description: "", args: { how: arg.string() } }, ({ how }) => failures[how]());
        ext.tool("coroutine", { description: "", args: { how: arg.string() } }, async ({ how }) => failures[how]());
        ext.tool("fine", { description: "" }, () => "fine");
        """,
}
"""Its programs, in both languages."""


def test_whatever_fails_there_is_exactly_one_answer_and_the_extension_continues(start_program):
    driver = start_program(**FAILURES)

    def message(how):
        answers = [driver.call_tool(tool, how=how) for tool in ("plain", "coroutine")]
        assert [answer["is_error"] for answer in answers] == [True, True]
        assert text_of(answers[0]) == text_of(answers[1])
        return text_of(answers[0])

    assert message("raise") == "out of order"
    assert message("mute") == "Odd"
    assert message("set").lower().endswith("set is not a JSON value".lower())
    assert "not JSON compliant" in message("nan") or message("nan") == "NaN is not a JSON value"
    assert message("bytes").startswith("the bytes are no PNG, JPEG, GIF or WebP image")
    assert re.search("(?i)circular|cyclic", message("loop"))
    assert message("large") == "result over 4 MiB"
    assert text_of(driver.call_tool("fine")) == "fine"
    assert driver.shut_down() == 0
    assert driver.rest() == [{"type": "shutdown_ack"}]
    assert "Error: out of order" in driver.log()


def test_an_exception_that_would_end_a_program_is_an_answer_too(start):
    driver = start("""
        def throw(error):
            raise error

        FAILURES = {
            "key": lambda: {}["missing"],
            "exit": lambda: sys.exit(3),
            "interrupt": lambda: throw(KeyboardInterrupt()),
        }

        @ext.tool
        def fail(how: str):
            return FAILURES[how]()
        """)

    assert text_of(driver.call_tool("fail", how="key")) == "KeyError 'missing'"
    assert text_of(driver.call_tool("fail", how="exit")) == "3"
    assert text_of(driver.call_tool("fail", how="interrupt")) == "KeyboardInterrupt"


def test_a_wrong_call_is_explained(start_program):
    driver = start_program(
        python="""
            @ext.tool
            async def weather(city: str): ...

            @ext.tool(schema={"type": "object"})
            async def unchecked(city): ...
            """,
        typescript="""
            ext.tool("weather", { description: "", args: { city: arg.string() } }, async () => {});
            ext.tool("unchecked", { description: "", schema: { type: "object" } }, async ({ city }) => {
              if (city === undefined) throw new Error("missing 1 required positional argument: 'city'");
            });
            """,
    )

    assert text_of(driver.call_tool("weather")) == "argument city is missing: expected a string"
    assert text_of(driver.call_tool("weather", city=1)) == "argument city: expected a string, got 1"
    assert text_of(driver.call_tool("climate")) == "this extension has no tool climate"
    assert "missing 1 required positional argument: 'city'" in text_of(driver.call_tool("unchecked"))
    driver.send("tool_call", id="list", name="weather", args=[])
    assert text_of(driver.expect("tool_result", id="list")) == "the arguments must be an object, not []"


def test_names_that_are_no_utf8_are_sent_with_question_marks(start_program):
    driver = start_program(
        python="""
            @ext.tool
            def name():
                return "caf\\udce9"
            """,
        typescript="""
            ext.tool("name", { description: "" }, () => "caf\\udce9");
            """,
    )

    assert text_of(driver.call_tool("name")) == "caf?"


def test_a_call_knows_where_it_comes_from_and_reports_progress(start_program):
    driver = start_program(
        python="""
            @ext.tool(replay="reconcile")
            async def deploy(call: Call):
                call.progress("half")
                return [call.session_id, call.operation_key, call.reconcile, call.cwd]
            """,
        typescript="""
            ext.tool("deploy", { description: "", replay: "reconcile" }, async (_, call) => {
              call.progress("half");
              return [call.session_id, call.operation_key, call.reconcile, call.cwd];
            });
            """,
    )

    driver.send(
        "tool_call", id="7", name="deploy", args={}, session_id="s1", operation_key="k", reconcile=True, cwd="/w"
    )

    assert driver.receive() == {"type": "tool_progress", "id": "7", "text": "half"}
    assert json.loads(text_of(driver.receive())) == ["s1", "k", True, "/w"]


def test_a_parameter_named_call_with_another_hint_is_an_argument(start):
    driver = start("""
        @ext.tool
        def birds(call: str):
            return call
        """)

    assert text_of(driver.call_tool("birds", call="cuckoo")) == "cuckoo"


def test_a_plain_function_around_a_coroutine_is_awaited(start):
    driver = start("""
        import functools

        def shouted(function):
            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                return function(*args, **kwargs)
            return wrapper

        @ext.tool
        @shouted
        async def greet(name: str):
            await asyncio.sleep(0)
            return f"hello {name}"
        """)

    assert driver.registrations[0]["schema"]["required"] == ["name"]
    assert text_of(driver.call_tool("greet", name="you")) == "hello you"


def test_tools_may_be_registered_and_taken_back_while_the_extension_runs(start_program):
    driver = start_program(
        python="""
            @ext.tool
            def learn():
                ext.tool(name="more")(lambda: "new")

            @ext.tool
            def forget():
                ext.unregister("tool", "more")
            """,
        typescript="""
            ext.tool("learn", { description: "" }, () => ext.tool("more", { description: "" }, () => "new"));
            ext.tool("forget", { description: "" }, () => ext.unregister("tool", "more"));
            """,
    )

    driver.call_tool("learn")
    assert driver.expect("register_tool")["name"] == "more"
    assert text_of(driver.call_tool("more")) == "new"
    driver.call_tool("forget")
    assert driver.expect("unregister") == {"type": "unregister", "kind": "tool", "name": "more"}
    assert driver.call_tool("more")["is_error"] is True
