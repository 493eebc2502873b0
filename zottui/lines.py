"""Events that are a line in the scrollback, and change nothing else."""

import re

from zotd.wire import events
from zotd.wire.events import AnyEvent
from zottui.blocks import Block, NoteLine, Rule

_LOGIN = re.compile(r"run:? zotctl login\b")


def in_terminal(words: str) -> str:
    """A sentence of the daemon, which tells programs how to log in, as it is for somebody who sits at this terminal."""
    return _LOGIN.sub("type /login", words)


def line_of(event: AnyEvent) -> Block | None:  # noqa: PLR0911  (a case per event)
    """What to print of an event that is a line and changes nothing."""
    match event:
        case events.CompactDone():
            return Rule("the conversation so far was summarised for the model")
        case events.Rewound(to=seq):
            return Rule(f"rewound to message {seq}")
        case events.Forked(origin=origin, file=file):
            return Rule(f"forked from {file or origin}")
        case events.Error(message=words) | events.Blocked(message=words):
            return NoteLine(in_terminal(words), "error")
        case events.Interrupted(partial=None, text=words):
            return NoteLine(f"interrupted: {words}", "warn")
        case events.GuardNote(extension=source, text=words):
            return NoteLine(words, "warn", source)
        case events.Notice(level=level, text=words):
            return NoteLine(words, level)
        case events.ExtNotify(extension=source, level=level, message=words):
            return NoteLine(words, level, source)
        case events.ExtDisplay(extension=source, text=words):
            return NoteLine(words, "info", source)
        case _:
            return None
