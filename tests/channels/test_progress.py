"""What somebody on Telegram sees of a run that takes long: the typing sign, and a message that changes and goes."""

import asyncio
import os
from itertools import pairwise

import pytest

from zotd.channels.doings import GROWN_CHARS, REPLY_CHARS, Doings
from zotd.channels.telegram import Bot
from zotd.channels.telegram_progress import EDIT_S, FIRST_S, GROUP_EDIT_S, PAUSE_S, REPLY_S, SIGN_S
from zotd.sdk import Message
from zotd.testing.script import CallPart, Gate, ScriptedReply, TextPart, calls, text
from zotd.testing.telegram_server import TOKEN, FailedMethod
from zotd.wire import events
from zotd.wire.content import ToolCall

TIME = "2026-11-21T20:11:18.919Z"
ABOUT = {"chat_id": 7, "message_id": 3}


class Clock:
    """Seconds that a test lets pass."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Run:
    """A run that is worked on, on a bot of Telegram's."""

    def __init__(self, bot, clock, telegram):
        self.bot = bot
        self.telegram = telegram
        self._clock = clock

    async def does(self, words, *, at, about=ABOUT):
        self._clock.now = at
        await self.bot.type(Message(words, "7", "telegram", about))

    def said(self):
        """What was sent, changed and deleted."""
        return [
            (method, fields.get("text"))
            for method, fields in self.telegram.requests
            if method not in {"sendChatAction", "getMe"}
        ]

    def signs(self):
        return sum(method == "sendChatAction" for method, _ in self.telegram.requests)


@pytest.fixture
async def run(telegram):
    clock = Clock()
    bot = await Bot.open(TOKEN, telegram.url, now=clock)
    yield Run(bot, clock, telegram)
    await bot.close()


async def test_a_long_run_has_a_message_that_changes_and_goes_with_the_answer(run):
    await run.does("Step 1", at=0)
    await run.does("Step 1", at=FIRST_S - 1)
    assert run.said() == []
    await run.does("Step 1: bash make", at=FIRST_S)
    await run.does("Step 1: bash make", at=FIRST_S + EDIT_S)
    await run.does("Step 2", at=FIRST_S + 2 * EDIT_S)
    await run.bot.answer(Message("Built.", "7", "telegram", ABOUT))
    assert run.said() == [
        ("sendMessage", "Step 1: bash make"),
        ("editMessageText", "Step 2"),
        ("sendMessage", "Built."),
        ("deleteMessage", None),
    ]


async def test_neither_signs_nor_changes_come_more_often_than_telegram_takes(run):
    signed, changed = [], []
    for second in range(200):
        signs, changes = run.signs(), len(run.said())
        await run.does(f"Step {second}", at=second)
        signed += [second] * (run.signs() - signs)
        changed += [second] * (len(run.said()) - changes)
    assert (len(signed) > 40, len(changed) > 10) == (True, True)
    assert all(later - earlier >= SIGN_S for earlier, later in pairwise(signed))
    assert all(later - earlier >= EDIT_S for earlier, later in pairwise(changed))


async def test_a_group_gets_fewer_changes_than_its_limit(run):
    for second in range(100):
        await run.does(f"Step {second}", at=second, about={"chat_id": -9, "message_id": 3, "group": True})
    assert 5 < len(run.said()) <= 1 + 100 / GROUP_EDIT_S


async def test_a_reply_is_shown_as_it_is_written(run):
    await run.does("Step 1\n\nOnce", at=0)
    assert run.said() == []
    await run.does("Step 1\n\nOnce upon", at=REPLY_S)
    await run.does("Step 1\n\nOnce upon a", at=REPLY_S + 1)
    await run.does("Step 1\n\nOnce upon a time", at=REPLY_S + EDIT_S)
    await run.bot.answer(Message("Once upon a time.", "7", "telegram", ABOUT))
    assert run.said() == [
        ("sendMessage", "Step 1\n\nOnce upon"),
        ("editMessageText", "Step 1\n\nOnce upon a time"),
        ("sendMessage", "Once upon a time."),
        ("deleteMessage", None),
    ]


@pytest.mark.parametrize("method", ["sendChatAction", "sendMessage", "editMessageText"])
async def test_what_telegram_refuses_is_tried_again_with_the_next_change(run, telegram, method):
    telegram.refusals.append(FailedMethod(method, 400, "no"))
    for step in range(4):
        await run.does(f"Step {step}", at=step * FIRST_S)
    assert run.said()[-1][1] == "Step 3"
    assert not telegram.refusals


@pytest.mark.parametrize("method", ["sendChatAction", "sendMessage", "editMessageText"])
@pytest.mark.parametrize(("demanded_s", "quiet_s"), [(600, 600), (None, PAUSE_S)])
async def test_a_chat_is_left_alone_for_as_long_as_telegram_demands(run, telegram, method, demanded_s, quiet_s):
    telegram.refusals.append(FailedMethod(method, 429, "no", retry_after=demanded_s))
    for step in range(3):  # the third is an edit
        await run.does(f"Step {step}", at=step * FIRST_S)
        if not telegram.refusals:
            break
    refused, requests = step * FIRST_S, len(telegram.requests)
    await run.does("Step 3", at=refused + quiet_s - 1)
    assert len(telegram.requests) == requests
    await run.does("Step 4", at=refused + quiet_s + FIRST_S)
    assert run.said()[-1][1] == "Step 4"


async def test_the_step_and_the_tool_are_told_to_the_channel(model, open_chat, telegram):
    chat = await open_chat(await model(calls(CallPart("bash", {"command": "cat go"})), text("done")))
    folder = chat.house.home / "channels"
    folder.mkdir(exist_ok=True)
    os.mkfifo(folder / "go")
    await telegram.write("wait for it")
    await chat.house.does("Step 1: bash cat go")
    await asyncio.to_thread((folder / "go").write_text, "now")  # waits until the command reads it
    assert (await telegram.said(3))[-1]["text"] == "done"


async def test_a_reply_is_told_to_the_channel_as_it_is_written(model, open_chat, telegram):
    go = asyncio.Event()
    words = "once upon a time " * 20
    chat = await open_chat(await model(ScriptedReply([TextPart([words]), Gate(go), TextPart(["they lived"])])))
    await telegram.write("tell me")
    await chat.house.does(f"Step 1\n\n{words}")
    go.set()
    await telegram.answered("they lived")


def test_what_a_run_does_is_its_step_and_its_latest_call():
    doings = Doings()
    call = ToolCall("c", "bash", {"timeout_s": 3, "command": "make\x1b[2K all"})
    told = [
        doings.take(event)
        for event in (
            events.UserMessage([], TIME, input="i", run="r"),
            events.TurnStart(1),
            events.AssistantMessage([call], TIME),
            events.ToolStart("c"),
            events.ToolStart("of another step"),
            events.TurnStart(2),
        )
    ]
    assert (told[1], told[5]) == ("Step 1", "Step 2")
    assert str(told[3]).startswith("Step 1: bash make")
    assert "\x1b" not in str(told[3])
    assert (told[0], told[2], told[4], doings.input) == (None, None, None, "i")
    doings.take(events.Done("r"))
    assert doings.input is None


def test_a_reply_is_told_in_parts_and_from_its_end():
    doings = Doings()
    doings.take(events.UserMessage([], TIME, input="i", run="r"))
    doings.take(events.TurnStart(2))
    told = [doings.take(events.TextDelta("word ")) for _ in range(GROWN_CHARS)]
    assert sum(one is not None for one in told) == len("word ")
    last = doings.take(events.TextDelta("x" * 2 * REPLY_CHARS))
    assert last == f"Step 2\n\n…{'x' * (REPLY_CHARS - 1)}"
    doings.take(events.Retry(attempt=1, of=0, delay_s=1.0, reason="overloaded"))
    assert doings.take(events.TextDelta("y" * GROWN_CHARS)) == f"Step 2\n\n{'y' * GROWN_CHARS}"
