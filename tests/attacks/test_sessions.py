"""Sessions beside each other."""

from zotd.testing.script import CallPart, calls, text

TOOLS = 20


async def test_a_question_in_one_session_holds_up_no_other(house, model, look):
    decider = await house.connect(can_approve=True)
    asks = await house.create(
        "openai", await model(calls(CallPart("write", {"path": "a", "content": "a"}))), decider, mode="ask"
    )
    await asks.ask("prompt", message="go")
    await asks.until("approval_requested")
    steps = [calls(CallPart("bash", {"command": "echo hi"})) for _ in range(TOOLS)]
    works = await house.create("openai", await model(*steps, text("done")))
    events = await works.run()
    assert len(look.only(events, "tool_result")) == TOOLS
    assert await asks.state() == "waiting"
    assert not (house.cwd / "a").exists()
    await asks.ask("abort")


async def test_two_sessions_in_one_directory_do_not_overwrite_each_other_by_an_edit(house, model, look):
    file = house.cwd / "a.txt"
    file.write_text("one two\n")
    first = await house.create("openai", await model(edit("one", "1"), text("done")))
    second = await house.create("openai", await model(edit("one two", "all"), edit("two", "2"), text("done")))
    await first.run()
    stale, fresh = look.only(await second.run(), "tool_result")
    assert (stale["is_error"], fresh["is_error"]) == (True, False)
    assert file.read_text() == "1 2\n"


def edit(old, new):
    return calls(CallPart("edit", {"path": "a.txt", "edits": [{"oldText": old, "newText": new}]}))
