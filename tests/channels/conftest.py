"""A scripted model, a scripted Telegram, and sessions between them."""

from contextlib import AsyncExitStack

import pytest

from tests.channels.house import serving
from zotd.config import ApprovalSection
from zotd.testing.model_server import ModelServer
from zotd.testing.telegram_server import USER, TelegramServer


@pytest.fixture
async def stack():
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
async def telegram(stack):
    return await stack.enter_async_context(TelegramServer())


@pytest.fixture
async def model(stack):
    """`await model(answer, ...)`: a scripted model that is served until the end of the test."""

    async def model(*answers):
        script = answers[0] if len(answers) == 1 and callable(answers[0]) else answers
        return await stack.enter_async_context(ModelServer(script))

    return model


class Chat:
    """A person with Telegram, and the house at the other end."""

    def __init__(self, telegram, house):
        self.telegram = telegram
        self.house = house

    @property
    def heard(self):
        return [message["text"] for message in self.telegram.sent]

    async def say(self, text, **fields):
        """Write, and wait for the next thing that the bot says."""
        before = len(self.telegram.sent)
        await self.telegram.write(text, **fields)
        return (await self.telegram.said(before + 1))[before]["text"]

    async def pair(self, **fields):
        """Let this sender in."""
        reply = await self.say("let me in", **fields)
        before = len(self.telegram.sent)
        await self.house.channels.pair(reply.split()[-1])
        await self.telegram.said(before + 1)


@pytest.fixture
def open_chat(stack, tmp_path, telegram):
    """`await open_chat(model)`: a house whose Telegram user 7 is paired."""

    async def open_chat(model, *, paired=True, mode="yolo", cwd=None):
        approval = ApprovalSection(mode=mode)
        house = await stack.enter_async_context(
            serving(tmp_path, model.openai_url, telegram.url, cwd=cwd, approval=approval)
        )
        chat = Chat(telegram, house)
        if paired:
            await chat.pair(user=USER)
        return chat

    return open_chat
