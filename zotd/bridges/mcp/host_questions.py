"""What a bridge asks the host during a call, for the server: a person, or the session's model."""

import asyncio
from collections.abc import Callable, Mapping
from itertools import count

from zotd.sdk.pipe import Frame

ALIVE_S = 15.0
"""Pause between two signs of life of the call, whose time limit counts from the last one."""

MAX_QUESTIONS = 20
"""Most questions of one call; the host answers no more."""

OVER: Frame = {"action": "cancel", "reason": "the call that asked is over"}
"""The answer to a question whose call has ended: the host gives none."""


class HostQuestions:
    """The open questions of one server."""

    def __init__(self, send: Callable[[Frame], None]) -> None:
        """`send` passes frames to the host."""
        self._send = send
        self._open: dict[str, tuple[str, asyncio.Future[Frame]]] = {}
        """The call that asks, and its answer, by the id of the question."""
        self._counts: dict[str, int] = {}
        """How many questions each call has asked."""
        self._ids = count(1)

    def may_ask(self, call: str) -> bool:
        """Return whether the call may ask one more question."""
        return self._counts.get(call, 0) < MAX_QUESTIONS

    def end(self, call: str) -> None:
        """The call has ended, and so have its questions."""
        self._counts.pop(call, None)
        for asking, answer in self._open.values():
            if asking == call and not answer.done():
                answer.set_result(OVER)

    def answered(self, frame: Frame) -> None:
        """Take an answer of the host."""
        _, waiting = self._open.get(str(frame.get("id")), ("", None))
        if waiting is not None and not waiting.done():
            waiting.set_result(frame)

    async def ask(self, call: str, kind: str, question: Mapping[str, object], *, waiting: str) -> Frame:
        """Send a question of this kind during the call, and return the answer. The call shows `waiting` meanwhile.

        Raises:
            ValueError: the question is longer than the host reads.
        """
        key = f"q{next(self._ids)}"
        answer: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._open[key] = (call, answer)
        self._counts[call] = self._counts.get(call, 0) + 1
        try:
            self._send({"type": kind, "id": key, "tool_call": call, **question})
            while not answer.done():
                self._send({"type": "tool_progress", "id": call, "text": waiting})
                await asyncio.wait([answer], timeout=ALIVE_S)
            return answer.result()
        finally:
            del self._open[key]
