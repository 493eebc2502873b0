"""The table of extensions that misbehave: what each does, how it is started, and what people are told about it.

Authors of hosts and of tests read it; `zotd.testing.hostile` is the program.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from zotd.testing import hostile

PROGRAM = str(Path(hostile.__file__))


class Probe(StrEnum):
    """What has to be done to it before its fault shows."""

    NONE = "none"
    CALL = "call"
    """Call its tool."""
    COMMAND = "command"
    """Run its command."""
    EVENTS = "events"
    """Send it events until its pipe is full."""
    GUARD = "guard"
    """Ask it about a tool call."""


@dataclass(frozen=True, slots=True)
class Misbehaviour:
    """One kind of bad extension."""

    id: str
    argv: Sequence[str]
    told: str
    """A part of what people are told: by the reason for its state, a call's result, a complaint, or `doctor`."""
    probe: Probe = Probe.NONE
    is_fatal: bool = False
    """Its process is ended, or ends."""

    @property
    def name(self) -> str:
        """A name for it, and for its tool and its command."""
        return self.id.replace(" ", "-")


def _acts(id_: str, told: str, *, probe: Probe = Probe.NONE, is_fatal: bool = False) -> Misbehaviour:
    argv = (sys.executable, "-I", "-S", PROGRAM, id_, id_.replace(" ", "-"))
    return Misbehaviour(id_, argv, told, probe, is_fatal)


def _starts(id_: str, *argv: str, told: str) -> Misbehaviour:
    return Misbehaviour(id_, argv, told, is_fatal=True)


MISBEHAVIOURS: tuple[Misbehaviour, ...] = (
    _starts("no such program", "/nowhere/at/all", told="could not be started: /nowhere/at/all: no such file"),
    _starts("not a program", "/dev/null", told="could not be started: /dev/null: permission denied"),
    _starts(
        "no such command", "no-such-command-anywhere", told="could not be started: no-such-command-anywhere: no such"
    ),
    _starts(
        "not an extension", "sh", "-c", "echo usage: me FILE >&2; exit 2", told="exited with code 2: usage: me FILE"
    ),
    _acts("silent", "sent no hello within 5 s", is_fatal=True),
    _acts("registers first", "began with `register_tool` instead of `hello`", is_fatal=True),
    _acts("nameless", "sent a hello without a name", is_fatal=True),
    _acts("no name", "did not begin with a hello: bad frame `hello`: object missing required field", is_fatal=True),
    _acts(
        "name is a number", "did not begin with a hello: bad frame `hello`: expected `str`, got `int`", is_fatal=True
    ),
    _acts("unknown first", 'did not begin with a hello: unknown frame type "teleport"', is_fatal=True),
    _acts("another name", 'it calls itself "impostor" in its hello'),
    _acts("noise", "and is skipped: not a JSON object: 'Debugger listening"),
    _acts("never ready", "", probe=Probe.CALL),
    _acts("exits", "exited with code 3: ModuleNotFoundError: No module named 'weather'", is_fatal=True),
    _acts("leaves", "exited with code 0", is_fatal=True),
    _acts("segfaults", "was ended by SIGSEGV", probe=Probe.CALL, is_fatal=True),
    _acts("dies in a call", "exited with code 5: out of luck", probe=Probe.CALL, is_fatal=True),
    _acts("closes stdout", "closed its stdout without exiting", is_fatal=True),
    _acts("closes stdin", "closed its stdin without exiting", probe=Probe.CALL, is_fatal=True),
    _acts("leaves a child", "exited with code 0", is_fatal=True),
    _acts("stubborn", ""),
    _acts("never reads", "did not read its input", probe=Probe.EVENTS, is_fatal=True),
    _acts("stops itself", "did not read its input", probe=Probe.EVENTS, is_fatal=True),
    _acts("floods", "and is skipped: not a JSON object: 'yes'"),
    _acts("floods frames", "", probe=Probe.CALL),
    _acts("floods stderr", "", probe=Probe.CALL),
    _acts("endless line", "wrote a line over 4 MiB, which was skipped"),
    _acts("registers without end", 'the tool "t2345" is refused: there are 2000 already'),
    _acts("answers nothing", "did not answer within", probe=Probe.CALL),
    _acts("answers too much", "result over 4 MiB", probe=Probe.CALL),
    _acts("answers too much id last", "result over 4 MiB", probe=Probe.CALL),
    _acts("answers twice", "late answers were dropped", probe=Probe.CALL),
    _acts("answers somebody else", "did not answer within", probe=Probe.CALL),
    _acts("answers with another type", "answered with a frame of the wrong type", probe=Probe.CALL),
    _acts("answers badly", "gave a bad answer: bad frame `tool_result`: expected `bool`, got `str`", probe=Probe.CALL),
    _acts("answers garbage", '[unknown block type "hologram" from extension answers-garbage]', probe=Probe.CALL),
    _acts("answers nothing in particular", "(no content)", probe=Probe.CALL),
    _acts("not unicode", "caf\N{REPLACEMENT CHARACTER} ?", probe=Probe.CALL),
    _acts("unknown action", 'answered with the unknown action "explode"', probe=Probe.COMMAND),
    _acts("bad frames", "sent a frame that is ignored: bad frame `notify`: expected `str`, got `int` in `message`"),
    _acts("bad tools", 'the tool "t2" is refused: its schema does not describe an object'),
    _acts("repeats itself", "", probe=Probe.CALL),
    _acts("deaf guard", "did not answer within", probe=Probe.GUARD),
    _acts("mad guard", "", probe=Probe.GUARD),
    _acts("guard that dies", "exited with code 9", probe=Probe.GUARD, is_fatal=True),
)
