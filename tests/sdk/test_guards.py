"""Events and guards."""

import json

import pytest

CALL = {"tool_id": "t1", "tool_name": "bash", "tool_args": {"command": "ls"}}


def test_events_arrive_one_after_another_in_their_order(start):
    driver = start("""
        @ext.on("turn_start")
        async def starts(event):
            await asyncio.sleep(0.01 / event.step)
            ext.notify("info", f"start {event.step}")

        @ext.on("turn_end")
        def ends(event):
            ext.notify("info", f"end {event.stop}")

        @ext.on("turn_end")
        def also():
            ext.notify("info", "also")
        """)
    assert [frame["events"] for frame in driver.registrations] == [["turn_start"], ["turn_end"], ["turn_end"]]

    for step in (1, 2, 3):
        driver.send("event", event="turn_start", step=step, session_id="s")
        driver.send("event", event="turn_end", stop="tool_use", session_id="s")

    notes = [driver.receive() for _ in range(9)]
    assert [note["message"] for note in notes] == [
        word for step in (1, 2, 3) for word in (f"start {step}", "end tool_use", "also")
    ]
    assert {note["session_id"] for note in notes} == {"s"}


def test_a_handler_that_raises_costs_no_later_event(start):
    driver = start("""
        @ext.on("turn_start")
        def handler(event):
            ext.notify("info", str(1 // (event.step - 1)))
        """)

    driver.send("event", event="turn_start", step=1)
    driver.send("event", event="turn_start", step=2)

    assert driver.expect("notify")["message"] == "1"
    assert "ZeroDivisionError" in driver.log()


def test_an_event_shows_all_fields_of_its_frame(start):
    driver = start("""
        @ext.on("tool_result")
        def handler(event):
            ext.notify("info", f"{event.name} {event.cwd} {event.tool_id} {event.text!r} {event.fields['status']}")
        """)

    driver.send("event", event="tool_result", cwd="/w", tool_id="t", status="done")

    assert driver.expect("notify")["message"] == "tool_result /w t '' done"


def test_a_guard_decides(start):
    driver = start("""
        @ext.guard("tool_call")
        def check(event):
            return {"rm": Decision.block("no"), "ls": Decision.args({"command": "pwd"})}.get(event.tool_args["command"])

        @ext.guard("turn_start")
        async def hours(event):
            return Decision.block("closed") if event.step > 1 else None

        @ext.guard("assistant_message")
        def scrub(event):
            return Decision.text(event.text.replace("secret", "…"))

        @ext.guard("before_agent_start")
        def prompt(event):
            return Decision.system_prompt(event.system_prompt + " Be brief.")
        """)

    def decide(event, **fields):
        frame = driver.intercept(event, **fields)
        del frame["type"], frame["id"]
        return frame

    assert [frame["intercept"] for frame in driver.registrations] == [
        ["tool_call"],
        ["turn_start"],
        ["assistant_message"],
        ["before_agent_start"],
    ]
    assert decide("tool_call", **CALL) == {"modified_args": {"command": "pwd"}}
    assert decide("tool_call", **{**CALL, "tool_args": {"command": "rm"}}) == {"block": True, "reason": "no"}
    assert decide("tool_call", **{**CALL, "tool_args": {"command": "cat"}}) == {}
    assert decide("turn_start", step=1) == {}
    assert decide("turn_start", step=2) == {"block": True, "reason": "closed"}
    assert decide("assistant_message", text="a secret") == {"replace_text": "a …"}
    assert decide("before_agent_start", system_prompt="You.") == {"system_prompt": "You. Be brief."}


def test_a_guard_adds_context_and_has_a_word_in_approvals(start):
    driver = start("""
        @ext.guard("user_prompt_submit")
        def prompt(event):
            return Decision.block("a key") if "sk-" in event.text else Decision.context("The build is red.")

        @ext.guard("tool_result")
        def result(event):
            return Decision.context(event.fields["result"]["content"][0]["text"].upper())

        @ext.guard("tool_call")
        def call(event):
            return Decision.allow() if event.tool_args["command"] == "ls" else Decision.ask("it deploys")
        """)

    def decide(event, **fields):
        frame = driver.intercept(event, **fields)
        del frame["type"], frame["id"]
        return frame

    result = {"content": [{"type": "text", "text": "fine"}], "is_error": False}
    assert decide("user_prompt_submit", text="hello") == {"context": "The build is red."}
    assert decide("user_prompt_submit", text="sk-1") == {"block": True, "reason": "a key"}
    assert decide("tool_result", **CALL, result=result) == {"context": "FINE"}
    assert decide("tool_call", **CALL) == {"permission": "allow"}
    deploy = {**CALL, "tool_args": {"command": "make deploy"}}
    assert decide("tool_call", **deploy) == {"permission": "ask", "reason": "it deploys"}


def test_an_event_without_a_guard_is_allowed(start):
    driver = start("")

    assert driver.intercept("tool_call", **CALL).keys() == {"type", "id"}


FAILING = """
    @ext.guard("tool_call")
    def check(event):
        raise RuntimeError("out of order")

    @ext.guard("turn_start")
    async def wrong(event):
        return "yes"

    @ext.guard("assistant_message")
    def other(event):
        return Decision.args({})
    """


def failures(driver):
    return [
        driver.intercept("tool_call", **CALL),
        driver.intercept("turn_start", step=1),
        driver.intercept("assistant_message", text="x"),
    ]


def test_a_guard_that_fails_allows_by_default(start):
    driver = start(FAILING)

    assert [frame.keys() for frame in failures(driver)] == [{"type", "id"}] * 3
    assert "RuntimeError: out of order" in driver.log()
    assert "the guard of turn_start returned a str, not a Decision or None" in driver.log()
    assert "the guard of assistant_message decided about modified_args" in driver.log()


@pytest.mark.parametrize("told", [True, False], ids=["told the directory", "beside its manifest"])
def test_a_guard_that_fails_refuses_where_the_manifest_says_closed(start, write, tmp_path, told):
    write("extension.json", json.dumps({"name": "mine", "on_failure": {"tool_call": "closed", "turn_start": "open"}}))
    driver = start(FAILING, **({"extension_dir": str(tmp_path)} if told else {}))

    tool, turn, message = failures(driver)

    assert tool["block"] is True
    assert tool["reason"] == "mine could not decide: out of order"
    assert turn.keys() == message.keys() == {"type", "id"}


def test_rewritten_arguments_that_are_no_json_are_a_failure_of_the_guard(start):
    driver = start("""
        @ext.guard("tool_call")
        def check(event):
            return Decision.args({"command": {1, 2}})
        """)

    assert driver.intercept("tool_call", **CALL).keys() == {"type", "id"}
    assert "TypeError" in driver.log()
