"""Conversations as the daemon has stored them, and its answers about them."""

from collections.abc import Sequence

from tests.zottui.fake_ui import FakeUi
from zotd.wire import api
from zotd.wire.content import Message, ShellRun, Text, ToolCall, ToolResult
from zottui.state import ViewState
from zottui.theme import PLAIN

INFO = api.SessionInfo("s1", "first", "/home/me/p", "openai", "m", "off", "ask", "idle", "", "")

TIME = "2026-11-22T09:00:00.000Z"


def user(seq, text):
    return Message("user", [Text(text)], TIME, seq)


def zot(seq, text, *calls):
    return Message("assistant", [Text(text), *calls], TIME, seq)


def call(id_, name="bash", **args):
    return ToolCall(id_, name, args or {"command": f"run {id_}"})


def result(seq, id_, text, *, is_error=False):
    return Message("tool", [ToolResult(id_, is_error, [Text(text)])], TIME, seq)


def shell(seq, command, output):
    run = ShellRun(id=f"h{seq}", command=command, context=True, exit=0)
    return Message("user", [Text(output)], TIME, seq, run)


def lines(number, what="line"):
    return "\n".join(f"{what} {n}" for n in range(1, number + 1))


def talk(turns, first=1):
    """Prompts and replies, two events apart: prompt n says `question n`, its reply `answer n`."""
    said = []
    for turn in range(first, first + turns):
        said += [user(4 * turn - 3, f"question {turn}"), zot(4 * turn - 1, f"answer {turn}")]
    return said


class Stored:
    """What `session.history` answers of these messages."""

    def __init__(self, messages: Sequence[Message], *, most=500, page_chars=None):
        self.messages = list(messages)
        self.left: set[int] = set()
        """Messages that a rewind has left behind."""
        self.asked: list[api.History] = []
        self._most = most
        self._page_chars = page_chars

    def __call__(self, params):
        self.asked.append(params)
        before = params.before if params.at is None else min(params.before or params.at + 1, params.at + 1)
        left = self.left if params.at is None else set()
        found = [m for m in self.messages if (before is None or m.seq < before) and m.seq not in left]
        page = found[-min(params.limit, self._most) :]
        while self._page_chars and len(page) > 1 and sum(map(_chars, page)) > self._page_chars:
            del page[0]
        return api.HistoryPage(page, len(page) < len(found))


def _chars(message):
    return sum(len(part.text) for part in message.content if isinstance(part, Text))


def fake_ui(stored, **fields):
    made = FakeUi(ViewState(session=INFO, last_seq=max((m.seq for m in stored.messages), default=0), **fields))
    made.theme = PLAIN
    made.answers[api.History] = stored
    return made
