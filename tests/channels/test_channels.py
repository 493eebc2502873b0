"""People on Telegram talk to sessions: the channel's real process, the real manager and journal, a scripted model."""

import asyncio

import pytest

from zotd.store.queries import PageQuery
from zotd.testing.script import Gate, Refusal, ScriptedReply, TextPart, text
from zotd.testing.telegram_server import FailedMethod
from zotd.wire.errors import CommandError

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
GROUP = -100200


async def test_a_stranger_gets_a_code_once_and_can_write_when_it_is_paired(model, open_chat, telegram):
    chat = await open_chat(await model(text("Hello, Ada.")), paired=False)

    told = await chat.say("hello")
    await telegram.write("hello?")
    await telegram.confirmed(2)
    assert len(telegram.sent) == 1, "told once"
    (waiting,) = chat.house.channels.listing().waiting
    assert (waiting.channel, waiting.sender) == ("telegram", "7")

    paired = await chat.house.channels.pair(told.split()[-1].lower())
    assert (paired.channel, paired.sender, paired.session) == ("telegram", "7", None)
    await telegram.said(2)
    assert await chat.say("hello!") == "Hello, Ada."
    assert await chat.house.inputs() == ["hello!"]


async def test_an_unpaired_user_is_a_stranger_again(model, open_chat):
    chat = await open_chat(await model())
    await chat.house.channels.unpair("telegram", "7")
    assert "zotctl channel pair" in await chat.say("hello")
    with pytest.raises(CommandError, match="not paired"):
        await chat.house.channels.unpair("telegram", "7")
    with pytest.raises(CommandError, match="no sender received this code"):
        await chat.house.channels.pair("AAAA-AAAA")


async def test_one_conversation_remembers_and_a_new_one_does_not(model, open_chat):
    server = await model(text("one"), text("two"), text("three"))
    chat = await open_chat(server)
    await chat.say("first")
    await chat.say("second")
    assert await chat.say("/new") == "A new conversation begins with your next message."
    await chat.say("third")
    assert [len(request.messages) for request in server.requests] == [2, 4, 2], "with the system prompt"
    sessions, _ = await chat.house.manager.page(PageQuery(limit=10))
    assert {session.cwd for session in sessions} == {str(chat.house.home / "channels")}


async def test_the_last_text_of_a_run_is_the_answer_and_a_failure_is_reported(model, open_chat):
    chat = await open_chat(await model(Refusal(400, "the prompt is odd"), text("better")))
    assert "the prompt is odd" in await chat.say("odd")
    assert await chat.say("even") == "better"


async def test_a_picture_reaches_the_model(model, open_chat, telegram):
    server = await model(text("a walrus"))
    chat = await open_chat(server)
    telegram.files["large"] = PNG
    sizes = [{"file_id": "small", "width": 90, "file_size": 900}, {"file_id": "large", "width": 800, "file_size": 28}]
    huge = {"file_id": "huge", "width": 9000, "file_size": 9_000_000}
    assert await chat.say("", photo=[*sizes, huge], caption="what is this?") == "a walrus"
    message = server.requests[0].messages[-1]
    assert [block["type"] for block in message["content"]] == ["image_url", "text"]


async def test_what_cannot_be_read_is_said(model, open_chat, telegram):
    server = await model(text("too large, you say"))
    chat = await open_chat(server)
    assert await chat.say("", sticker={"emoji": "🦭"}) == "Only text and pictures can be read here."
    document = {"file_id": "huge", "mime_type": "image/png", "file_size": 9_000_000}
    assert await chat.say("", document=document) == "too large, you say"
    assert "too large to be read" in str(server.requests[0].messages)


async def test_commands_tell_stop_and_compact(model, open_chat, telegram):
    gate = asyncio.Event()
    server = await model(ScriptedReply([Gate(gate)]), text("again"), text("It was about stories."))
    chat = await open_chat(server)
    assert await chat.say("/info") == "There is no conversation yet."
    assert await chat.say("/stop") == "Nothing is running."
    assert "/compact" in await chat.say("/help")

    await telegram.write("tell me a story")
    await server.received(1)
    assert "(running)" in await chat.say("/info")
    before = len(telegram.sent)
    await telegram.write("/stop@scripted_bot")
    assert {one["text"] for one in (await telegram.said(before + 2))[before:]} == {
        "Stopping.",
        "Stopped before there was an answer.",
    }
    gate.set()
    assert await chat.say("and now?") == "again"
    assert await chat.say("/compact the plot") == "The conversation so far was summarised."


async def test_messages_of_one_sender_are_answered_in_order_while_another_does_not_wait(model, open_chat, telegram):
    gate = asyncio.Event()

    def answer(request):
        said = request.messages[-1]["content"]
        number = said.split()[-1]
        return ScriptedReply([Gate(gate), TextPart([number])]) if number == "one" else text(number)

    chat = await open_chat(await model(answer))
    await chat.pair(user=8)
    before = len(telegram.sent)
    for number in ("one", "two", "three"):
        await telegram.write(f"message {number}")
    await telegram.write("message other", user=8)
    await telegram.said(before + 1)
    gate.set()
    sent = (await telegram.said(before + 4))[before:]
    assert [(one["chat_id"], one["text"]) for one in sent] == [(8, "other"), (7, "one"), (7, "two"), (7, "three")]


async def test_in_a_group_each_user_is_paired_separately_and_only_messages_to_the_bot_are_read(
    model, open_chat, telegram
):
    server = await model(text("yes"), text("again yes"))
    chat = await open_chat(server)
    await telegram.write("@scripted_bot are you there?", group=GROUP, user=7)
    (refused,) = (await telegram.said(3))[2:]
    assert (refused["chat_id"], "pair" in refused["text"]) == (GROUP, True), "7 is paired in private only"
    await chat.house.channels.pair(refused["text"].split()[-1])
    await telegram.said(4)

    await telegram.write("talking to each other", group=GROUP)
    await telegram.write("/stop@another_bot", group=GROUP)
    number = await telegram.write("@Scripted_Bot now?", group=GROUP, is_topic_message=True, message_thread_id=5)
    (answer,) = (await telegram.said(5))[4:]
    assert (answer["text"], answer["message_thread_id"]) == ("yes", 5)
    assert answer["reply_parameters"]["message_id"] == number
    assert await chat.say("and?", group=GROUP, reply_to_message={"from": {"id": 7000000}}) == "again yes"
    assert await chat.house.inputs() == ["now?", "and?"]


async def test_an_answer_that_telegram_refuses_for_a_moment_arrives_once_and_whole(model, open_chat, telegram):
    long = "\n".join(f"line {number} " + "🦭" * 40 for number in range(100))
    await open_chat(await model(text(long)))
    before = len(telegram.sent)
    telegram.refusals.append(FailedMethod("sendMessage", 429, "Too Many Requests", retry_after=0.01))
    await telegram.write("a long one")
    await telegram.asked("sendMessage", before + 2)
    telegram.refusals.append(FailedMethod("sendMessage", 500, "Internal Server Error"))
    sent = [one["text"] for one in (await telegram.said(before + 3))[before:]]
    assert "\n".join(sent) == long
    assert all(len(one.encode("utf-16-le")) // 2 <= 4096 for one in sent)


async def test_the_token_is_nowhere_to_be_read(model, open_chat, telegram):
    chat = await open_chat(await model(text("hello")))
    telegram.refusals.append(FailedMethod("getUpdates", 409, "Conflict: terminated by other getUpdates request"))
    polls = len([1 for method, _ in telegram.requests if method == "getUpdates"])
    await chat.say("hello")
    await telegram.asked("getUpdates", polls + 2)  # the refused one, and the next try: its log is written in between
    said = [path.read_text() for path in (chat.house.home / "logs").iterdir()]
    assert "another program receives this bot's messages" in "".join(said)
    kept = [path.read_bytes() for path in chat.house.home.rglob("*") if path.is_file()]
    assert not any(b"scripted-bot-token" in content for content in kept)
    assert (chat.house.home / "channels.json").stat().st_mode & 0o777 == 0o600


async def test_the_list_says_how_a_channel_is_doing(model, open_chat, telegram):
    chat = await open_chat(await model(text("hello")))
    await chat.say("hello")
    found = chat.house.channels.listing()
    (channel,) = found.channels
    assert (channel.name, channel.extension, channel.state, channel.error) == (
        "telegram",
        "py-telegram",
        "connected",
        None,
    )
    assert found.paired[0].session is not None
