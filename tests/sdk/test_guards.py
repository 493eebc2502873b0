"""Events and guards."""

import json
import re

import pytest

CALL = {"tool_id": "t1", "tool_name": "bash", "tool_args": {"command": "ls"}}


def test_events_arrive_one_after_another_in_their_order(start_program):
    driver = start_program(
        python="""
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
            """,
        typescript="""
            ext.on("turn_start", async (event) => {
              await sleep(10 / event.step);
              ext.notify("info", `start ${event.step}`);
            });
            ext.on("turn_end", (event) => ext.notify("info", `end ${event.stop}`));
            ext.on("turn_end", () => ext.notify("info", "also"));
            """,
    )
    assert [frame["events"] for frame in driver.registrations] == [["turn_start"], ["turn_end"], ["turn_end"]]

    for step in (1, 2, 3):
        driver.send("event", event="turn_start", step=step, session_id="s")
        driver.send("event", event="turn_end", stop="tool_use", session_id="s")

    notes = [driver.receive() for _ in range(9)]
    assert [note["message"] for note in notes] == [
        word for step in (1, 2, 3) for word in (f"start {step}", "end tool_use", "also")
    ]
    assert {note["session_id"] for note in notes} == {"s"}


def test_a_handler_that_raises_costs_no_later_event(start_program):
    driver = start_program(
        python="""
            @ext.on("turn_start")
            def handler(event):
                ext.notify("info", str(1 // (event.step - 1)))
            """,
        typescript="""
            ext.on("turn_start", (event) => {
              if (event.step === 1) throw new Error("ZeroDivisionError");
              ext.notify("info", "1");
            });
            """,
    )

    driver.send("event", event="turn_start", step=1)
    driver.send("event", event="turn_start", step=2)

    assert driver.expect("notify")["message"] == "1"
    assert "ZeroDivisionError" in driver.log()


def test_an_event_shows_all_fields_of_its_frame(start_program):
    driver = start_program(
        python="""
            @ext.on("tool_result")
            def handler(event):
                ext.notify("info", f"{event.name} {event.cwd} {event.tool_id} {event.text!r} {event.fields['status']}")
            """,
        typescript="""
            ext.on("tool_result", (event) => {
              ext.notify("info", `${event.event} ${event.cwd} ${event.tool_id} '${event.text ?? ""}' ${event.status}`);
            });
            """,
    )

    driver.send("event", event="tool_result", cwd="/w", tool_id="t", status="done")

    assert driver.expect("notify")["message"] == "tool_result /w t '' done"


def test_a_guard_decides(start_program):
    driver = start_program(
        python="""
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
            """,
        typescript="""
            ext.guard("tool_call", (event) => {
              return { rm: Decision.block("no"), ls: Decision.args({ command: "pwd" }) }[event.tool_args.command];
            });
            ext.guard("turn_start", async (event) => (event.step > 1 ? Decision.block("closed") : null));
            ext.guard("assistant_message", (event) => Decision.text(event.text.replace("secret", "…")));
            ext.guard("before_agent_start", (event) => Decision.systemPrompt(event.system_prompt + " Be brief."));
            """,
    )

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


def test_a_guard_adds_context_and_has_a_word_in_approvals(start_program):
    driver = start_program(
        python="""
            @ext.guard("user_prompt_submit")
            def prompt(event):
                return Decision.block("a key") if "sk-" in event.text else Decision.context("The build is red.")

            @ext.guard("tool_result")
            def result(event):
                return Decision.context(event.fields["result"]["content"][0]["text"].upper())

            @ext.guard("tool_call")
            def call(event):
                return Decision.allow() if event.tool_args["command"] == "ls" else Decision.ask("it deploys")
            """,
        typescript="""
            ext.guard("user_prompt_submit", ({ text }) => {
              return text.includes("sk-") ? Decision.block("a key") : Decision.context("The build is red.");
            });
            ext.guard("tool_result", ({ result }) => Decision.context(result.content[0].text.toUpperCase()));
            ext.guard("tool_call", ({ tool_args }) => {
              return tool_args.command === "ls" ? Decision.allow() : Decision.ask("it deploys");
            });
            """,
    )

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


def test_an_event_without_a_guard_is_allowed(start_program):
    driver = start_program(python="", typescript="")

    assert driver.intercept("tool_call", **CALL).keys() == {"type", "id"}


FAILING = {
    "python": """
        @ext.guard("tool_call")
        def check(event):
            raise RuntimeError("out of order")

        @ext.guard("turn_start")
        async def wrong(event):
            return ["yes"]

        @ext.guard("assistant_message")
        def other(event):
            return Decision.args({})
        """,
    "typescript": """
        ext.guard("tool_call", () => { throw new Error("out of order"); });
        ext.guard("turn_start", async () => ["yes"]);
        ext.guard("assistant_message", () => Decision.args({}));
        """,
}


def failures(driver):
    return [
        driver.intercept("tool_call", **CALL),
        driver.intercept("turn_start", step=1),
        driver.intercept("assistant_message", text="x"),
    ]


def test_a_guard_that_fails_allows_by_default(start_program):
    driver = start_program(**FAILING)

    assert [frame.keys() for frame in failures(driver)] == [{"type", "id"}] * 3
    assert "Error: out of order" in driver.log()
    assert re.search("the guard of turn_start returned a (list|Array), not a Decision", driver.log())
    assert "the guard of assistant_message decided about modified_args" in driver.log()


@pytest.mark.parametrize("told", [True, False], ids=["told the directory", "beside its manifest"])
def test_a_guard_that_fails_refuses_where_the_manifest_says_closed(start_program, write, tmp_path, told):
    write("extension.json", json.dumps({"name": "mine", "on_failure": {"tool_call": "closed", "turn_start": "open"}}))
    driver = start_program(**FAILING, **({"extension_dir": str(tmp_path)} if told else {}))

    tool, turn, message = failures(driver)

    assert tool["block"] is True
    assert tool["reason"] == "mine could not decide: out of order"
    assert turn.keys() == message.keys() == {"type", "id"}


def test_rewritten_arguments_that_are_no_json_are_a_failure_of_the_guard(start_program):
    driver = start_program(
        python="""
            @ext.guard("tool_call")
            def check(event):
                return Decision.args({"command": {1, 2}})
            """,
        typescript="""
            ext.guard("tool_call", () => Decision.args({ command: new Set([1, 2]) }));
            """,
    )

    assert driver.intercept("tool_call", **CALL).keys() == {"type", "id"}
    assert "TypeError" in driver.log()
