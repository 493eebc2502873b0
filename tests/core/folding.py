"""Short constructors for records, and a short form of transcripts."""

from zotd.core import records
from zotd.core.transcript import Transcript
from zotd.testing.histories import TIME
from zotd.wire.content import Text, ToolCall, ToolResult


def prompt(key, text="do it", **fields):
    return records.Input(time=TIME, id=key, content=[Text(text)], **fields)


def attempt(step=1, *, key=None, **fields):
    return records.Attempt(
        **{"time": TIME, "run": "r", "number": 1, "provider": "p", "model": "m", "step": step, "input": key, **fields}
    )


def resumed():
    """The record with which a cut run resumes."""
    return attempt(0, number=0, resumes=True)


def reply(*content, stop="end_turn"):
    return records.Reply(time=TIME, run="r", step=1, content=list(content), stop=stop)


def call(key):
    return ToolCall(key, "bash", {"command": key})


def started(key, within=None, replay="never"):
    return records.CallStarted(time=TIME, run="r", call_id=key, name="bash", args={}, replay=replay, within=within)


def result(key, text="done", **fields):
    return records.CallResult(
        **{"time": TIME, "run": "r", "call_id": key, "name": "bash", "is_error": False, "content": [Text(text)]}
        | fields
    )


def usage():
    return records.UsageRow(time=TIME, run="r", step=1, provider="p", model="m", tokens=None)


def cut():
    return records.Interrupted(time=TIME, what="run", text="cut")


def compaction(kept):
    return records.Compaction(time=TIME, summary="short", kept=kept)


def fold(*items):
    transcript = Transcript()
    for item in items:
        transcript.apply(item)
    return transcript


def seen(transcript):
    """The messages in a short form, with a word for each block."""
    return [f"{message.role}: {' '.join(map(word, message.content))}" for message in transcript.messages]


def word(block):
    match block:
        case Text(text):
            return text
        case ToolCall(key):
            return f"call {key}"
        case ToolResult(key, _, [Text(text)]):
            return f"{key} {text}"
        case _:
            return type(block).__name__.lower()
