"""States of the client to be shown."""

from dataclasses import replace

from zotd.wire import api
from zotd.wire.content import Tokens
from zotd.wire.events import ApprovalRequested, ClientInfo, QueueItem
from zottui.markdown.stream import Stream
from zottui.state import LinkState, LiveCall, LiveReply, RunState, ViewState

NOW = 100.0

SESSION = api.SessionInfo(
    id="s_1",
    name="fix the tests",
    cwd="/home/me/src/p",
    provider="openai",
    model="gpt-5",
    reasoning="medium",
    mode="yolo",
    state="running",
    created="2026-01-01T00:00:00.000Z",
    updated="2026-01-01T00:00:00.000Z",
)

LIVE = ViewState(link=LinkState.LIVE, session=SESSION)

BUSY = replace(LIVE, run=RunState(since=90.0))

SINCE = {"c1": 88.0}
"""When `BASH` began to run."""

BASH = LiveCall("c1", "bash", {"command": "make check SLOW=yes"}, tail="one\ntwo 日本語\nthree\n", is_written=True)

EVIL = "a\x1b[2Jb\x07c\r\nd\te\u202e"
"""Text that would steer a terminal."""


def replying(text="", **fields):
    """A run in which the model has written this."""
    _, stream = Stream().feed(text)
    return replace(BUSY, run=RunState(since=90.0, started=SINCE), reply=LiveReply(stream=stream, **fields))


def queued(*texts, mode="queue", sender="me"):
    return tuple(QueueItem(f"i{n}", text, sender, mode) for n, text in enumerate(texts))


def question(key="a_1", tool="bash", **fields):
    defaults = {"tool_id": "c1", "args": {"command": "npm test"}, "args_digest": "d1", "session": "s_1"}
    return ApprovalRequested(approval=key, tool=tool, **(defaults | fields))


def clients(number):
    return tuple(ClientInfo(f"k{n}", "zot", "terminal", "") for n in range(number))


def spent(session, today=None):
    return {"usage": Tokens(cost_usd=session), "cost_today": today}
