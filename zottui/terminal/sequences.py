"""Control sequences that do not move the cursor: title, focus, notification, clipboard. For `UiContext.write_raw`."""

import base64
import re
from collections.abc import Mapping

from zotd.sanitize import blanked
from zottui.terminal.environment import in_tmux, understands_osc

PUSH_TITLE, POP_TITLE = "\x1b[22;0t", "\x1b[23;0t"
FOCUS_ON, FOCUS_OFF = "\x1b[?1004h", "\x1b[?1004l"

RESTORE = "\x1b[?2026l\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[0 q\x1b[m"
"""End synchronized output and bracketed paste; reset autowrap, the cursor, its shape and colours for the shell."""

BELL = "\a"
ST = "\x1b\\"

TITLE_CHARS = 120
NOTIFICATION_CHARS = 200

CLIPBOARD_BYTES = 74_994
"""Most bytes for the clipboard: Base64 makes 99,992 of them, and xterm accepts sequences of 100,000."""


class TooLongError(Exception):
    """The text is longer than what terminals accept for the clipboard."""


def one_line(text: str, limit: int) -> str:
    """Return text without control characters, on one line of at most `limit` characters."""
    line = blanked(text)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def title(text: str) -> str:
    """Return the sequence that sets the title of the window and its icon."""
    return f"\x1b]0;{one_line(text, TITLE_CHARS)}{ST}"


def notification(text: str, env: Mapping[str, str]) -> str:
    """Return the sequence that shows a desktop notification (OSC 9) and rings the bell; only the bell without OSC."""
    if not understands_osc(env):
        return BELL
    line = one_line(text, NOTIFICATION_CHARS)
    if re.match(r"\d+;", line):
        line = f"- {line}"  # OSC 9 with a number means something else: `9;4;…` is a progress bar
    return _through(f"\x1b]9;{line}{ST}", env) + BELL


def clipboard(text: str, env: Mapping[str, str]) -> str:
    """Return the sequence that puts text on the terminal's clipboard (OSC 52), which also works over ssh.

    In tmux it is sent twice: for tmux's own clipboard (`set-clipboard`), and wrapped for the outer terminal
    (`allow-passthrough`).

    Raises:
        TooLongError: the text has more than `CLIPBOARD_BYTES` bytes.
    """
    data = text.encode(errors="replace")
    if len(data) > CLIPBOARD_BYTES:
        raise TooLongError(
            f"the text has {len(data):,} bytes, but terminals take at most {CLIPBOARD_BYTES:,}: copy less"
        )
    sequence = f"\x1b]52;c;{base64.b64encode(data).decode()}{ST}"
    return sequence + _through(sequence, env) if in_tmux(env) else sequence


def _through(sequence: str, env: Mapping[str, str]) -> str:
    """Wrap a sequence so that tmux passes it to the outer terminal."""
    if not in_tmux(env):
        return sequence
    doubled = sequence.replace("\x1b", "\x1b\x1b")  # tmux's escaping inside of its passthrough sequence
    return f"\x1bPtmux;{doubled}{ST}"
