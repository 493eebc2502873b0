"""What a model thinks: shown while it does, to whoever wants to see it, and in no message."""

from tests.e2e.conftest import only
from zotd.testing.script import ScriptedReply, TextPart, ThinkingPart

MULL = ScriptedReply([ThinkingPart(["Hm, ", "walrus?"]), TextPart(["Yes."])])


async def test_thinking_is_shown_while_it_comes_before_the_text(house, model, vendor):
    talk = await house.create(vendor, await model(MULL))
    shown = await talk.run()
    live = [event for event in shown if event["type"] in {"thinking_delta", "text_delta"}]
    assert [event["type"] for event in live][-1] == "text_delta"
    assert "".join(str(event["delta"]) for event in only(live, "thinking_delta")) == "Hm, walrus?"
    assert all("seq" not in event for event in live)


async def test_thinking_is_in_no_message_and_in_no_replay(house, model, vendor):
    talk = await house.create(vendor, await model(MULL))
    (said,) = only(await talk.run(), "assistant_message")
    assert said["content"] == [{"type": "text", "text": "Yes."}]
    late = await house.follow(talk.id, after={"epoch": talk.epoch, "seq": 0})
    assert only(late.client.seen, "thinking_delta") == []
    page = await talk.ask("session.history")
    assert "walrus" not in str(page)


async def test_where_guards_see_the_text_first_reasoning_is_not_streamed(house, model, shop):
    shop.write(
        "censor",
        """
        @ext.guard("assistant_message")
        def look(event):
            return None
        """,
    )
    talk = await shop.open(await model(MULL))
    shown = await talk.run()
    thoughts = only(shown, "thinking_delta")
    assert thoughts
    assert {event["delta"] for event in thoughts} == {""}
