"""Guards in a session: what they refuse, rewrite and hide, and what people and the model see of it."""

import asyncio

from zotd.testing.script import CallPart, Gate, Hang, ScriptedReply, TextPart, calls, text


async def test_a_guard_refuses_a_call_and_the_model_is_told_why(shop, model, vendor, look, results):
    shop.install("guard")
    (shop.house.cwd / "keep").mkdir()
    server = await model(calls(CallPart("bash", {"command": "rm -rf keep"})), text("I may not."))
    talk = await shop.open(server, vendor)
    events = await talk.run("delete keep")
    assert (shop.house.cwd / "keep").exists()
    assert "rm -rf is not allowed here" in results(server.requests[1])[0]
    note = look.only(events, "guard_note")[0]
    assert (note["extension"], note["event"]) == ("guard", "tool_call")
    assert note["text"].startswith("blocked a call of bash: rm -rf is not allowed")


async def test_changed_arguments_run_and_the_transcript_keeps_the_model_s_own(shop, model, look, results):
    shop.write(
        "safer",
        """
        @ext.guard("tool_call")
        def check(event):
            return Decision.args({"command": "echo safe"})
        """,
    )
    server = await model(calls(CallPart("bash", {"command": "echo danger"})), text("ok"))
    talk = await shop.open(server)
    events = await talk.run()
    assert look.only(events, "tool_call")[0]["args"] == {"command": "echo danger"}
    assert "safe" in results(server.requests[1])[0]
    assert "changed the arguments of bash" in look.only(events, "guard_note")[0]["text"]
    assert "echo danger" in str((await talk.ask("get_messages"))["messages"])


async def test_text_is_held_until_the_guards_have_seen_it_and_people_see_what_they_say(shop, model, look):
    shop.write(
        "censor",
        """
        @ext.guard("assistant_message")
        def check(event):
            return Decision.text(event.text.replace("walrus", "******"))
        """,
    )
    server = await model(text("It ", "says ", "walrus."), text("again"))
    talk = await shop.open(server)
    events = await talk.run()
    assert [event["delta"] for event in look.only(events, "text_delta")] == ["It says ******."]
    assert look.only(events, "assistant_message")[0]["content"][0]["text"] == "It says ******."
    history = await talk.ask("session.history")
    assert "walrus" not in str(history)
    assert "It says walrus." in str(await talk.texts())
    await talk.run()
    assert "It says walrus." in str(server.requests[1].messages)


async def test_a_reply_that_a_guard_hides_is_kept_for_the_model_only(shop, model, look):
    shop.write("censor", '@ext.guard("assistant_message")\ndef check(event):\n    return Decision.block("secret")')
    server = await model(text("walrus"))
    talk = await shop.open(server)
    events = await talk.run()
    assert look.only(events, "text_delta") == look.only(events, "assistant_message") == []
    assert "secret" in look.only(events, "guard_note")[0]["text"]
    assert "walrus" in str(await talk.texts())


async def test_what_a_guard_has_not_seen_stays_hidden_when_the_run_is_aborted(shop, model, look):
    shop.write("censor", '@ext.guard("assistant_message")\ndef check(event):\n    return None')
    server = await model(ScriptedReply([TextPart(["walrus"]), Hang()]))
    talk = await shop.open(server)
    await talk.ask("prompt", message="go")
    await talk.until("assistant_start")
    await talk.ask("abort")
    events = await talk.until("done")
    assert "walrus" not in str(events)
    assert "walrus" not in str(await talk.ask("session.history"))


async def test_a_guard_stops_a_step_before_the_model_is_called(shop, model, look):
    shop.write("brake", '@ext.guard("turn_start")\ndef check(event):\n    return Decision.block("not on Sundays")')
    server = await model(text("never"))
    talk = await shop.open(server)
    events = await talk.run()
    end = look.only(events, "turn_end")[0]
    assert (end["stop"], end["error"]) == ("error", "not on Sundays")
    assert look.only(events, "error")[0]["message"] == "not on Sundays"
    assert server.requests == []


async def test_a_guard_replaces_the_system_prompt(shop, model, look):
    shop.write(
        "prompter",
        """
        @ext.guard("before_agent_start")
        def check(event):
            return Decision.system_prompt("You are a walrus.")
        """,
    )
    server = await model(text("hi"))
    talk = await shop.open(server)
    await talk.run()
    assert server.requests[0].messages[0]["content"] == "You are a walrus."


async def test_a_guard_adds_text_to_a_prompt_which_the_model_reads_and_people_do_not(shop, model, vendor, look):
    shop.write(
        "teller",
        """
        @ext.guard("user_prompt_submit")
        def check(event):
            return Decision.context(f"The build is red ({event.fields['mode']}).")
        """,
    )
    server = await model(text("ok"))
    talk = await shop.open(server, vendor, mode="yolo")
    events = await talk.run("hello")
    assert "The build is red (yolo)." in str(server.requests[0].messages[-1])
    assert look.only(events, "user_message")[0]["content"] == [{"type": "text", "text": "hello"}]
    assert look.only(events, "guard_note") == []


async def test_a_prompt_that_a_guard_refuses_is_on_no_record(shop, model, look):
    shop.write(
        "keys",
        """
        @ext.guard("user_prompt_submit")
        def check(event):
            return Decision.block("that is a key") if "sk-" in event.text else None
        """,
    )
    server = await model(text("ok"))
    talk = await shop.open(server)
    response = await talk.client.answer("prompt", session=talk.id, message="use sk-1234")
    assert (response["code"], response["error"]) == ("blocked", "keys refuses the prompt: that is a key")
    await talk.run("hello")
    assert "sk-1234" not in str(await talk.ask("session.history"))
    assert "sk-1234" not in str(server.requests[0].messages)


async def test_a_prompt_that_has_waited_and_is_refused_stays_in_the_queue(shop, model, look):
    shop.write(
        "keys",
        """
        @ext.guard("user_prompt_submit")
        def check(event):
            return Decision.block("that is a key") if "sk-" in event.text else None
        """,
    )
    gate = asyncio.Event()
    server = await model(ScriptedReply([TextPart(["o"]), Gate(gate), TextPart(["k"])]))
    talk = await shop.open(server)
    await talk.ask("prompt", message="hello")
    await talk.until("assistant_start")
    waiting = await talk.ask("prompt", message="use sk-1234")
    gate.set()
    await talk.until("done")
    events = await talk.until("done")
    assert look.only(events, "error")[0]["message"] == "keys refuses the prompt: that is a key"
    queue = (await talk.until("queue_changed"))[-1]
    assert (queue["held"], [item["id"] for item in queue["items"]]) == (True, [waiting["input"]])


async def test_a_guard_adds_text_to_the_result_of_a_call_that_ran(shop, model, results):
    shop.write(
        "reader",
        """
        @ext.guard("tool_result")
        def check(event):
            said = event.fields["result"]["content"][0]["text"]
            return Decision.context(f"{event.tool_name} {event.tool_args['command']}: {'ran' in said}")
        """,
    )
    server = await model(calls(CallPart("bash", {"command": "echo ran"}), CallPart("nothing", {})), text("ok"))
    talk = await shop.open(server)
    await talk.run()
    ran, unknown = results(server.requests[1])
    assert "bash echo ran: True" in ran
    assert "True" not in unknown
