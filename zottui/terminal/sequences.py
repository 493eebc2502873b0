"""What is sent to a terminal beside text. None of it moves the cursor; write it with `Desk.write_raw`."""

import base64
import re
from collections.abc import Mapping

from zotd.sanitize import blanked
from zottui.terminal.environment import in_tmux, understands_osc

PUSH_TITLE, POP_TITLE = "\x1b[22;0t", "\x1b[23;0t"
FOCUS_ON, FOCUS_OFF = "\x1b[?1004h", "\x1b[?1004l"

RESTORE = "\x1b[?2026l\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[0 q\x1b[m"
"""No update under way, no bracketed paste; wrapping, the cursor, its shape and colours as they are in a shell."""

BELL = "\a"
ST = "\x1b\\"

TITLE_CHARS = 120
NOTIFICATION_CHARS = 200

CLIPBOARD_BYTES = 74_994
"""Base64 makes 99,992 of them, and xterm takes sequences of 100,000."""


class TooLongError(Exception):
    """More than a terminal takes for its clipboard."""


def one_line(text: str, limit: int) -> str:
    """Text that can do nothing but be shown: no control characters, at most `limit` characters."""
    line = blanked(text)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def title(text: str) -> str:
    """Set the title of the window and of its icon."""
    return f"\x1b]0;{one_line(text, TITLE_CHARS)}{ST}"


def notification(text: str, env: Mapping[str, str]) -> str:
    """Show a notification of the desktop, where the terminal can, and ring the bell."""
    if not understands_osc(env):
        return BELL
    line = one_line(text, NOTIFICATION_CHARS)
    if re.match(r"\d+;", line):
        line = f"- {line}"  # `9;4;…` is something else: a progress bar
    return _through(f"\x1b]9;{line}{ST}", env) + BELL


def clipboard(text: str, env: Mapping[str, str]) -> str:
    """Put text on the clipboard of the terminal, also of one at the other end of an ssh connection.

    tmux takes it for its own clipboard, and is asked to pass it on (`set-clipboard`, `allow-passthrough`).

    Raises:
        TooLongError: It has more than `CLIPBOARD_BYTES` bytes.
    """
    data = text.encode(errors="replace")
    if len(data) > CLIPBOARD_BYTES:
        raise TooLongError(
            f"the text has {len(data):,} bytes, but terminals take at most {CLIPBOARD_BYTES:,}: copy less"
        )
    sequence = f"\x1b]52;c;{base64.b64encode(data).decode()}{ST}"
    return sequence + _through(sequence, env) if in_tmux(env) else sequence


def _through(sequence: str, env: Mapping[str, str]) -> str:
    """The same for the terminal that tmux runs in."""
    if not in_tmux(env):
        return sequence
    doubled = sequence.replace("\x1b", "\x1b\x1b")
    return f"\x1bPtmux;{doubled}{ST}"
