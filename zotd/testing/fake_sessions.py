"""The sessions of the fake daemon: what a prompt says decides how its run goes; see `SCRIPTS`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from zotd import ids
from zotd.clock import rfc3339
from zotd.wire import api, events
from zotd.wire.base import ENCODER
from zotd.wire.content import Block, Message, Text, Tokens, ToolCall


class AttachedClient(Protocol):
    """An attached client."""

    def send(self, data: bytes) -> None:
        """Write whole lines."""
        ...


@dataclass
class FakeSession:
    """What it remembers of a session."""

    info: api.SessionInfo
    params: api.SessionCreate
    env: dict[str, str]
    committed: list[events.AnyEvent] = field(default_factory=list)
    """Number n has `seq` n + 1."""
    followers: "list[AttachedClient]" = field(default_factory=list)
    running: str | None = None
    queue: list[tuple[str, str]] = field(default_factory=list)
    """(input, text) of what waits."""

    @property
    def id(self) -> str:
        """Its id."""
        return self.info.id

    def show(self, *shown: events.AnyEvent) -> None:
        """Send events to all who follow, stamped; those that are not live are kept."""
        stamped: list[events.AnyEvent] = []
        for event in shown:
            seq = None if isinstance(event, events.LIVE) else len(self.committed) + 1
            event = msgspec.structs.replace(event, session=self.id, seq=seq)  # noqa: PLW2901
            stamped.append(event)
            if seq is not None:
                self.committed.append(event)
        for peer in self.followers:
            peer.send(ENCODER.encode_lines(stamped))


def run(session: FakeSession, key: str, run_id: str, text: str) -> None:
    """Start a run, and mostly end it too."""
    session.running = run_id
    content: list[Block] = [Text(text)]
    session.show(events.UserMessage(content, rfc3339(), input=key, run=run_id), events.TurnStart(1))
    word, _, rest = text.partition(" ")
    SCRIPTS.get(word, _echo)(session, rest if word in SCRIPTS else text)


def _echo(session: FakeSession, text: str) -> None:
    _say(session, [text])
    _end(session, "end_turn")


def _many(session: FakeSession, text: str) -> None:
    _say(session, ["x"] * int(text))
    _end(session, "end_turn")


def _fail(session: FakeSession, text: str) -> None:
    failure = text or "the model failed"
    session.show(events.TurnEnd("error", error=failure), events.Error(failure))
    _done(session)


def _limit(session: FakeSession, _: str) -> None:
    session.show(events.TurnEnd("tool_use"), events.Error("the step limit was reached"))
    _done(session)


def _hang(session: FakeSession, text: str) -> None:
    session.show(events.AssistantStart(), events.TextDelta(text or "thinking"))


def _tool(session: FakeSession, _: str) -> None:
    call = ToolCall("c_1", "bash", {"command": "true"})
    session.show(
        events.AssistantStart(),
        events.AssistantMessage([Text("I look."), call], rfc3339()),
        events.ToolCallEvent("c_1", "bash", {"command": "true"}),
        events.TurnEnd("tool_use"),
        events.ToolResultEvent("c_1", is_error=False, content=[Text("fine")], name="bash"),
        events.TurnStart(2),
    )
    _echo(session, "looked")


def _env(session: FakeSession, text: str) -> None:
    _echo(session, session.env.get(text, "unset"))


SCRIPTS: dict[str, Callable[[FakeSession, str], None]] = {
    "many": _many,
    "fail": _fail,
    "limit": _limit,
    "hang": _hang,
    "tool": _tool,
    "env": _env,
}
"""`many N` deltas; `fail TEXT` as the model's error; `limit` of steps; `hang` until aborted; `tool` calls one; `env NAME`."""


def _say(session: FakeSession, pieces: Sequence[str]) -> None:
    text = "".join(pieces)
    session.show(events.AssistantStart(), *(events.TextDelta(piece) for piece in pieces))
    session.show(events.Usage(3, 4, 0, 0, 0.0, Tokens(3, 4)), events.AssistantMessage([Text(text)], rfc3339()))


def _end(session: FakeSession, stop: str) -> None:
    session.show(events.TurnEnd(stop))
    _done(session)


def abort(session: FakeSession) -> None:
    """End what runs."""
    if session.running is not None:
        _end(session, "aborted")


def _done(session: FakeSession) -> None:
    session.show(events.Done(run=session.running))
    session.running = None
    if session.queue:
        key, text = session.queue.pop(0)
        show_queue(session)
        run(session, key, ids.new("r"), text)


def show_queue(session: FakeSession) -> None:
    """Tell who follows what waits."""
    items = [events.QueueItem(key, text, "", "queue") for key, text in session.queue]
    session.show(events.QueueChanged(items, held=False))


def messages(session: FakeSession) -> list[Message]:
    """The transcript."""
    found: list[Message] = []
    for event in session.committed:
        if isinstance(event, events.UserMessage):
            found.append(Message("user", event.content, event.time, event.seq))
        elif isinstance(event, events.AssistantMessage):
            found.append(Message("assistant", event.content, event.time, event.seq))
    return found
