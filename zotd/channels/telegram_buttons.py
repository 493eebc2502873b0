"""The buttons below a question: what Telegram is told when one is pressed, and what they say when the question is over.

pressed -> a message to the daemon -> its reply: decided, or over -> one button that says so
                                                 refused          -> a notice to the person who has pressed
                                                 anything else    -> a message
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus

from zotd.channels.outcomes import NOTICES, OUTCOMES, OVER
from zotd.channels.telegram_api import Api, Pressed, TelegramError, Written

DECIDED = "-"
"""The value of a button that only says what was decided."""

CHANGE = "/change "
"""How the value of the button begins that only plans have."""

FOREVER_BAD = range(HTTPStatus.BAD_REQUEST, HTTPStatus.TOO_MANY_REQUESTS)
"""Error codes of requests that would be refused again."""


def keyboard(choices: Sequence[tuple[str, str]]) -> dict[str, object]:
    """Return the buttons for these labels and values, in a row."""
    return {"inline_keyboard": [[{"text": label, "callback_data": value} for label, value in choices]]}


def answered_by(written: Written) -> str:
    """Return the beginning of a message that is a reply to a plan: the command that approves it with other steps; else nothing."""
    markup = written.reply_to_message.reply_markup if written.reply_to_message else None
    if markup is None or written.text.startswith("/"):
        return ""
    values = (button.callback_data for row in markup.inline_keyboard for button in row)
    return next((f"{value}\n" for value in values if value.startswith(CHANGE)), "")


async def is_settled(api: Api, pressed: Pressed) -> bool:
    """Return whether the button only says what was decided; tells that to the one who has pressed it."""
    if pressed.data != DECIDED:
        return False
    await _try(api, "answerCallbackQuery", {"callback_query_id": pressed.id, "text": OVER})
    return True


async def replied(api: Api, about: Mapping[str, object], text: str) -> bool:
    """Show the reply to a pressed button where it was pressed; return False if it has to be sent as a message.

    Args:
        api: the Bot API.
        about: the metadata of the message that pressing has made; `callback` and `question` are its ids.
        text: the reply.
    """
    query = {"callback_query_id": about["callback"]}
    if text in NOTICES:
        return await _try(api, "answerCallbackQuery", {**query, "text": text, "show_alert": True})
    if text not in OUTCOMES:
        await _try(api, "answerCallbackQuery", query)  # ends the sign of a wait on the button
        return False
    await _try(api, "answerCallbackQuery", {**query, "text": text})
    place = {"chat_id": about.get("chat_id"), "message_id": about.get("question")}
    markup = keyboard([(text.rstrip("."), DECIDED)])
    return await _try(api, "editMessageReplyMarkup", {**place, "reply_markup": markup})


async def _try(api: Api, method: str, fields: Mapping[str, object]) -> bool:
    """Call the API; return False if it would refuse that again, because the message or the query is too old."""
    try:
        await api.call(method, fields)
    except TelegramError as error:
        if error.code not in FOREVER_BAD:
            raise
        return False
    return True
