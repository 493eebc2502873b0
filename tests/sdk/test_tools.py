"""Tools: how they are registered, called and answered."""

import json

from zotd.testing.ext_driver import text_of


def test_a_function_is_a_tool_with_its_name_docstring_and_hints(start):
    driver = start("""
        @ext.tool
        async def weather(city: str, call) -> str:
            '''Current weather of a city.

            In words.
            '''
            return f"{city}: fog"
        """)

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


def test_options_of_a_tool_are_told_to_the_host(start):
    driver = start("""
        schema = {"type": "object", "properties": {"anything": {}}}

        @ext.tool(name="other", description="does it", schema=schema, replay="safe", parallel=False, exposure="deferred")
        def tool(**arguments):
            return arguments
        """)

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


def test_an_unknown_option_is_refused_when_the_extension_starts(launch):
    driver = launch("ext.tool(concurrent=False)")

    assert driver.rest() == []
    assert driver.end() == 1
    assert "a tool has no option concurrent" in driver.log()


def test_every_kind_of_result_reaches_the_model(start):
    driver = start("""
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
        """)

    def give(kind):
        frame = driver.call_tool("give", kind=kind)
        del frame["type"], frame["id"]
        return frame

    def text(text):
        return {"content": [{"type": "text", "text": text}], "is_error": False}

    png = {"type": "image", "mime_type": "image/png", "data": "iVBORw0KGgouLi4="}
    assert give("text") == text("plain")
    assert give("nothing") == text("")
    assert give("number") == text("1.5")
    assert give("object") == text('{"ä": [1, null]}')
    assert give("dataclass") == text('[{"x": 3}]')
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


def test_a_tool_with_an_output_schema_gives_its_json_as_the_structured_result(start):
    driver = start("""
        @ext.tool(output_schema={"type": "object"})
        def count() -> dict:
            return {"n": 1}
        """)

    answer = driver.call_tool("count")
    assert answer["structured_content"] == {"n": 1}
    assert text_of(answer) == '{"n": 1}'


def test_whatever_fails_there_is_exactly_one_answer_and_the_extension_continues(start):
    driver = start("""
        class Odd(Exception):
            def __str__(self):
                return ""

        FAILURES = {
            "raise": lambda: 1 / 0,
            "key": lambda: {}["missing"],
            "mute": lambda: throw(Odd()),
            "exit": lambda: sys.exit(3),
            "interrupt": lambda: throw(KeyboardInterrupt()),
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
        """)

    def message(how):
        answers = [driver.call_tool(tool, how=how) for tool in ("plain", "coroutine")]
        assert [answer["is_error"] for answer in answers] == [True, True]
        assert text_of(answers[0]) == text_of(answers[1])
        return text_of(answers[0])

    assert message("raise") == "division by zero"
    assert message("key") == "KeyError 'missing'"
    assert message("mute") == "Odd"
    assert message("exit") == "3"
    assert message("interrupt") == "KeyboardInterrupt"
    assert message("set") == "set is not a JSON value"
    assert "not JSON compliant" in message("nan")
    assert message("bytes").startswith("the bytes are no PNG, JPEG, GIF or WebP image")
    assert message("loop") == "Circular reference detected"
    assert message("large") == "result over 4 MiB"
    assert text_of(driver.call_tool("fine")) == "fine"
    assert driver.shut_down() == 0
    assert driver.rest() == [{"type": "shutdown_ack"}]
    assert "ZeroDivisionError" in driver.log()


def test_a_wrong_call_is_explained(start):
    driver = start("""
        @ext.tool
        async def weather(city: str): ...

        @ext.tool(schema={"type": "object"})
        async def unchecked(city): ...
        """)

    assert text_of(driver.call_tool("weather")) == "argument city is missing: expected a string"
    assert text_of(driver.call_tool("weather", city=1)) == "argument city: expected a string, got 1"
    assert text_of(driver.call_tool("climate")) == "this extension has no tool climate"
    assert "missing 1 required positional argument: 'city'" in text_of(driver.call_tool("unchecked"))
    driver.send("tool_call", id="list", name="weather", args=[])
    assert text_of(driver.expect("tool_result", id="list")) == "the arguments must be an object, not []"


def test_names_that_are_no_utf8_are_sent_with_question_marks(start):
    driver = start("""
        @ext.tool
        def name():
            return "caf\\udce9"
        """)

    assert text_of(driver.call_tool("name")) == "caf?"


def test_a_call_knows_where_it_comes_from_and_reports_progress(start):
    driver = start("""
        @ext.tool(replay="reconcile")
        async def deploy(call: Call):
            call.progress("half")
            return [call.session_id, call.operation_key, call.reconcile, call.cwd]
        """)

    driver.send(
        "tool_call", id="7", name="deploy", args={}, session_id="s1", operation_key="k", reconcile=True, cwd="/w"
    )

    assert driver.receive() == {"type": "tool_progress", "id": "7", "text": "half"}
    assert text_of(driver.receive()) == '["s1", "k", true, "/w"]'


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


def test_tools_may_be_registered_and_taken_back_while_the_extension_runs(start):
    driver = start("""
        @ext.tool
        def learn():
            ext.tool(name="more")(lambda: "new")

        @ext.tool
        def forget():
            ext.unregister("tool", "more")
        """)

    driver.call_tool("learn")
    assert driver.expect("register_tool")["name"] == "more"
    assert text_of(driver.call_tool("more")) == "new"
    driver.call_tool("forget")
    assert driver.expect("unregister") == {"type": "unregister", "kind": "tool", "name": "more"}
    assert driver.call_tool("more")["is_error"] is True
