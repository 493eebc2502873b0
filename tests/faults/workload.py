"""What sessions are asked to do while their daemon is killed, and the model that does it.

A prompt is its own plan: `k3x17: bash+read stamp` wants two calls side by side, then one, then a text. The model reads
the plan from the history and sees there how far it has got, so that it answers the same whatever was killed between.
Each call carries a key that no other call has, by which its effects are found (`tests.faults.check`).
"""

import asyncio
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from zotd.core.ports import Replay
from zotd.testing.model_server import Received
from zotd.testing.script import Answer, CallPart, Gate, ScriptedReply, TextPart, calls, text

TOOLS: Mapping[str, Replay] = {
    "bash": Replay.NEVER,
    "write": Replay.NEVER,
    "edit": Replay.NEVER,
    "note": Replay.NEVER,
    "read": Replay.SAFE,
    "look": Replay.SAFE,
    "relay": Replay.SAFE,
    "stamp": Replay.IDEMPOTENT,
    "transfer": Replay.RECONCILE,
}
"""The tools of the plans. Those that are not `BUILTIN` belong to the extension beside; `relay` has the host run `bash`."""

BUILTIN = ("bash", "write", "edit", "read")

WRITTEN = "written"
"""Directory that `write` writes to, a file for each key; below the working directory, as the next two."""

EDITED = "edited"
"""Prefix of the file, one for each session, to which `edit` adds a line for each key."""

WITNESS = "witness"

END = "the end\n"

KEY = re.compile(r"\bk\d+x\d+(?:x\d+x\d+)?\b")
"""Session and input, and of a call step and place."""

SLOW_EVERY = 5
"""Every so many inputs the last reply takes its time, so that a kill can meet a text that is half there."""

SLOW_S = 0.15
"""How long: longer than 0.1 s, after which the text that has come is kept."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One input."""

    key: str
    steps: Sequence[Sequence[str]]
    """The tools of each step."""

    @property
    def message(self) -> str:
        """As the prompt says it."""
        return f"{self.key}: {' '.join('+'.join(step) for step in self.steps)}"

    @classmethod
    def read(cls, message: str) -> "Plan":
        """The reverse."""
        key, _, steps = message.partition(": ")
        return cls(key, [step.split("+") for step in steps.split()])


def same(session: int, tool: str) -> Iterator[Plan]:
    """Plans with one call of this tool each, without end."""
    for number in count(1):
        yield Plan(f"k{session}x{number}", [[tool]])


def mixed(session: int, chance: random.Random) -> Iterator[Plan]:
    """Plans of one to three steps with one to three calls, without end."""
    for number in count(1):
        steps = [_step(chance) for _ in range(chance.randint(1, 3))]
        yield Plan(f"k{session}x{number}", steps)


def answer(received: Received) -> Answer:
    """What the model says to this history (OpenAI's words)."""
    messages = received.messages
    last = max(index for index, message in enumerate(messages) if message["role"] == "user")
    plan = Plan.read(str(messages[last]["content"]))
    done = sum("tool_calls" in message for message in messages[last:])
    if done < len(plan.steps):
        return calls(*(_call(tool, f"{plan.key}x{done}x{place}") for place, tool in enumerate(plan.steps[done])))
    if int(plan.key.partition("x")[2]) % SLOW_EVERY:
        return text(f"{plan.key} ", "is done")
    rest = asyncio.Event()
    asyncio.get_running_loop().call_later(SLOW_S, rest.set)
    return ScriptedReply([TextPart([f"{plan.key} ", "is "]), Gate(rest), TextPart(["done"])])


def _step(chance: random.Random) -> list[str]:
    return chance.sample(sorted(TOOLS), chance.randint(1, 3))


def _call(tool: str, key: str) -> CallPart:
    match tool:
        case "bash":
            return CallPart(tool, {"command": f"echo 'bash {key} - ran' >> {WITNESS}; sleep 0.005"})
        case "write":
            return CallPart(tool, {"path": f"{WRITTEN}/{key}", "content": key})
        case "edit":
            session = key.partition("x")[0]
            edits = [{"oldText": END, "newText": f"{key}\n{END}"}]
            return CallPart(tool, {"path": f"{EDITED}-{session}", "edits": edits})
        case "read":
            return CallPart(tool, {"path": "notes.txt", "offset": 1})
        case _:
            return CallPart(tool, {"key": key})
