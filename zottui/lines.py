"""Events that print one line into the scrollback and change no state."""

import re

from zotd.wire import events
from zotd.wire.events import AnyEvent
from zottui.blocks import Block, NoteLine, Rule

_LOGIN = re.compile(r"run:? zotctl login\b")


def in_terminal(words: str) -> str:
    """Replace the daemon's advice `run: zotctl login` by `type /login`, which works in this client."""
    return _LOGIN.sub("type /login", words)


def line_of(event: AnyEvent) -> Block | None:  # noqa: PLR0911  (a case per event)
    """Return the block to print for such an event; None for all others."""
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
