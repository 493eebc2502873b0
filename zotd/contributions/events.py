"""A session's events as its extensions hear them (`docs/extensions.md`): the names are those of the protocol."""

from collections.abc import Callable, Sequence
from weakref import WeakSet

from zotd.exthost.extension import SupervisedExtension
from zotd.exthost.peer import ExtensionPeer
from zotd.exthost.surroundings import About
from zotd.wire import events, ext
from zotd.wire.base import ENCODER
from zotd.wire.content import Image, Text, ToolContent

RESULT_BYTES = 256 * 1024
"""Longest result that is told; a longer one is only said to be so."""


def say(name: str, about: About, **fields: object) -> ext.Event:
    """An event about a session, with the fields that belong to it."""
    return ext.Event(event=name, session_id=about.session, cwd=about.cwd, **fields)  # type: ignore[arg-type]  # by name


def told(event: events.Event, about: About) -> ext.Event | None:
    """The event as extensions get it; None when it is not for them."""
    match event:
        case events.TurnStart(step=step):
            return say("turn_start", about, step=step)
        case events.AssistantMessage(content=content):
            text = "".join(block.text for block in content if isinstance(block, Text))
            return say("assistant_message", about, text=text or None)
        case events.ToolCallEvent(id=key, name=name, args=args):
            return say("tool_call", about, tool_id=key, tool_name=name, tool_args=args)
        case events.TurnEnd(stop=stop, error=error):
            return say("turn_end", about, stop=stop, error=error)
        case events.ToolResultEvent():
            return _result(event, about)
        case _:
            return None


def result_of(content: ToolContent, is_error: bool) -> dict[str, object]:
    """A result as extensions get it: images as their size, nothing over `RESULT_BYTES`."""
    blocks = [
        {"type": "image", "mime_type": block.mime_type, "bytes": block.bytes}
        if isinstance(block, Image)
        else {"type": "text", "text": block.text}
        for block in content
    ]
    fits = len(ENCODER.encode(blocks)) <= RESULT_BYTES
    return {"content": blocks if fits else [], "is_error": is_error, "truncated": not fits}


def _result(event: events.ToolResultEvent, about: About) -> ext.Event:
    return say(
        "tool_result",
        about,
        tool_id=event.id,
        tool_name=event.name,
        status="failed" if event.is_error else "completed",
        result=result_of(event.content, event.is_error),
    )


class EventSubscriptions:
    """The extensions that hear of a session; each hears everything in the order in which it happened."""

    def __init__(
        self,
        extensions: Callable[[], Sequence[SupervisedExtension]],
        about: About,
        *,
        is_new: Callable[[], bool],
    ) -> None:
        """`extensions`: those there are at the moment, in load order. `is_new`: the session has no messages yet."""
        self._extensions = extensions
        self._is_new = is_new
        self._about = about
        self._greeted: WeakSet[ExtensionPeer] = WeakSet()
        """Processes that know of this session."""

    def emit(self, event: ext.Event) -> None:
        """Tell an event to those who subscribed to it."""
        for extension in self._extensions():
            if extension.hears(event.event):
                extension.send(event)

    def tell(self, event: events.Event) -> None:
        """Tell an event of the session, if it is for extensions."""
        frame = told(event, self._about)
        if frame is not None:
            self.emit(frame)

    def begin(self) -> None:
        """Tell the beginning of the session to those processes that do not know of it yet."""
        source = "startup" if self._is_new() else "resume"
        for extension in self._extensions():
            peer = extension.serving
            if peer is not None and peer not in self._greeted and extension.hears("session_start"):
                self._greeted.add(peer)
                extension.send(say("session_start", self._about, source=source))

    def prompted(self, text: str, *, queued: bool, images: int) -> None:
        """A prompt was accepted."""
        self.emit(say("user_prompt_submit", self._about, text=text, queued=queued, image_count=images))

    def end(self) -> None:
        """The session leaves memory."""
        self.emit(say("session_end", self._about, reason="shutdown"))
