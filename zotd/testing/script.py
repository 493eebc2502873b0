"""What a scripted model answers, as data: replies made of steps. `zotd.testing.model_server` plays them.

    Reply([Text("Looking. "), Call("read", {"path": "a.txt"})])      a reply that asks for a tool
    Reply([Text("It says ", "walrus.")])                             two deltas, then the end
    Reply([Text("Once"), Cut()])                                     the connection breaks
    Refusal(529, headers={"retry-after": "0.01"})                    an error instead of a reply

The same as JSON (for `python -m zotd.testing.model_server SCRIPT.json`): a list of
`{"steps": [{"type": "text", "deltas": ["Hi"]}, {"type": "call", "name": "read", "args": {"path": "a.txt"}}]}` and
`{"status": 529}`.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence

import msgspec

from zotd.wire.content import Tokens


class TextPart(msgspec.Struct, frozen=True, tag="text"):
    """Text, one delta for each piece."""

    deltas: Sequence[str]


class ThinkingPart(msgspec.Struct, frozen=True, tag="thinking"):
    """Reasoning: in Anthropic's Messages signed, in Chat Completions `reasoning_content`.

    In OpenAI's Responses the deltas are those of a summary, and the signature stands for the encrypted content.
    """

    deltas: Sequence[str]
    signature: str = "signed"


class DeclinedPart(msgspec.Struct, frozen=True, tag="declined"):
    """The model declines to answer, in these words: OpenAI's `refusal`; in Anthropic's Messages a text."""

    deltas: Sequence[str]


class CallPart(msgspec.Struct, frozen=True, tag="call"):
    """A tool call. `raw` replaces the JSON of `args`, for arguments that are broken; it comes in `pieces` deltas.

    `signature`: as Gemini signs calls, on OpenAI's API.
    """

    name: str
    args: Mapping[str, object] = {}
    raw: str | None = None
    pieces: int = 2
    signature: str = ""

    @property
    def argument_pieces(self) -> list[str]:
        """Its arguments as JSON text, delta by delta."""
        whole = json.dumps(self.args) if self.raw is None else self.raw
        size = max(1, -(-len(whole) // self.pieces))
        return [whole[start : start + size] for start in range(0, len(whole), size)] or [""]


class Hang(msgspec.Struct, frozen=True, tag="hang"):
    """Nothing more comes until the server is closed; as the first step, not even headers."""


class Cut(msgspec.Struct, frozen=True, tag="cut"):
    """The connection breaks here; a call before it is cut in the middle of its arguments."""


class StreamError(msgspec.Struct, frozen=True, tag="fault"):
    """An error event in the middle of the stream."""

    message: str = "Overloaded"
    kind: str = "overloaded_error"
    fails: bool = False
    """In OpenAI's Responses: the event is `response.failed` instead of `error`."""


class Gate(msgspec.Struct, frozen=True, tag="gate"):
    """Go on when somebody sets the event."""

    event: asyncio.Event


Step = TextPart | ThinkingPart | DeclinedPart | CallPart | Hang | Cut | StreamError | Gate


class ScriptedReply(msgspec.Struct, frozen=True):
    """One reply with status 200."""

    steps: Sequence[Step]
    stop: str | None = None
    """In our words: `end_turn`, `tool_use`, `length`, `refusal`; None: what fits the steps."""
    usage: Tokens = Tokens(input=10, output=5)
    joined: bool = False
    """Everything up to the next wait in one write, as a fast vendor does."""
    model: str | None = None
    """What it calls the model that answers; None: the one that was asked."""
    cut_after: int | None = None
    """The connection breaks after that many events of the stream; 0: without an answer. None: it does not break."""

    @property
    def stop_reason(self) -> str:
        """Why it ends."""
        if self.stop is None and any(isinstance(step, DeclinedPart) for step in self.steps):
            return "refusal"
        return self.stop or ("tool_use" if any(isinstance(step, CallPart) for step in self.steps) else "end_turn")

    def ends(self, index: int) -> bool:
        """Whether that step is whole: not before a `Cut`, nor the last call of a reply that ran out of tokens."""
        after = self.steps[index + 1] if index + 1 < len(self.steps) else None
        is_last_call = after is None and isinstance(self.steps[index], CallPart)
        return not isinstance(after, Cut) and not (is_last_call and self.stop_reason == "length")


class Refusal(msgspec.Struct, frozen=True):
    """An error instead of a reply."""

    status: int
    message: str = "refused by the script"
    kind: str = ""
    """The vendor's error type or code; empty: what goes with the status."""
    headers: Mapping[str, str] = {}
    page: str = ""
    """HTML that is sent instead, as proxies and networks with a login page do."""


Answer = ScriptedReply | Refusal


def text(*deltas: str, stop: str | None = None, usage: Tokens | None = None) -> ScriptedReply:
    """A reply of text only."""
    return ScriptedReply([TextPart(deltas)], stop, usage or Tokens(input=10, output=5))


def calls(*wanted: CallPart, before: str = "") -> ScriptedReply:
    """A reply that asks for tools, side by side."""
    return ScriptedReply([*([TextPart([before])] if before else []), *wanted])


class _StoredReply(msgspec.Struct, frozen=True):
    steps: Sequence[TextPart | ThinkingPart | DeclinedPart | CallPart | Hang | Cut | StreamError] = ()
    stop: str | None = None
    usage: Tokens = Tokens(input=10, output=5)
    joined: bool = False
    status: int = 200
    message: str = "refused by the script"
    headers: Mapping[str, str] = {}


def load(data: bytes) -> list[Answer]:
    """Answers from JSON; raises `msgspec.ValidationError` for what is none."""
    stored = msgspec.json.decode(data, type=list[_StoredReply])
    return [
        ScriptedReply(one.steps, one.stop, one.usage, one.joined)
        if one.status == 200
        else Refusal(one.status, one.message, headers=one.headers)
        for one in stored
    ]
