"""The Bot API over real HTTP, from a server that means no good."""

import pytest

from zotd.channels.telegram_api import ANSWER_BYTES, Api, TelegramError
from zotd.testing.telegram_server import TOKEN


async def test_an_answer_without_end_is_read_up_to_its_limit_only(telegram, stack):
    telegram.pads = True
    api = Api(TOKEN, telegram.url)
    stack.push_async_callback(api.close)
    with pytest.raises(TelegramError, match=f"answered getMe with more than {ANSWER_BYTES:,} bytes"):
        await api.call("getMe")
    await telegram.is_left.wait()
