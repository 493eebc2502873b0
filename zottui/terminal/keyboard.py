"""Keyboard input for prompt_toolkit, with the terminal's own reports filtered out."""

import re
from collections.abc import Callable
from typing import TextIO

from prompt_toolkit.input.posix_utils import PosixStdinReader
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

FOCUS_IN, FOCUS_OUT = "\x1b[I", "\x1b[O"

SHIFT_ENTER = ("\x1b[13;2u", "\x1b[27;2;13~")
"""Shift+Enter in terminals that distinguish it from Enter: as CSI u, and as xterm's modifyOtherKeys."""

ALT_ENTER = "\x1b\r"

PASTE_BEGIN, PASTE_END = "\x1b[200~", "\x1b[201~"

ESCAPE_S = 0.05
"""Seconds that Escape waits for the rest of a sequence (`Application.ttimeoutlen`). Terminals send it in one write."""

REPORT_CHARS = 256
"""Longest report that is held back until it is complete; longer input was typed."""

_WHOLE = re.compile(
    rf"\x1b\]\d{{1,4}};[^\x07\x1b]{{0,{REPORT_CHARS}}}(?:\x07|\x1b\\)"  # OSC: a colour, the clipboard
    rf"|\x1bP[>\d!$+][^\x1b]{{0,{REPORT_CHARS}}}\x1b\\"  # DCS: the version, a setting
    r"|\x1b\[[?>][\d;]{0,64}(?:c|n|\$y)"  # CSI: device attributes, colour scheme, a mode
    r"|\x1b\[[IO]"
    r"|\x1b\[13;2u|\x1b\[27;2;13~"
)

_BEGUN = re.compile(
    r"\x1b(?:"
    rf"\](?:\d{{1,4}}(?:;[^\x07\x1b]{{0,{REPORT_CHARS}}}\x1b?)?)?"
    rf"|P(?:[>\d!$+][^\x1b]{{0,{REPORT_CHARS}}}\x1b?)?"
    r"|\[(?:[?>][\d;]{0,64}\$?)?"
    r"|\[1(?:3(?:;2?)?)?"
    r"|\[2(?:7(?:;(?:2(?:;(?:1(?:3)?)?)?)?)?)?"
    r")?\Z"
)


class Reports:
    """Filters the terminal's answers and reports out of the input, also if reads split them."""

    def __init__(self, on_focus: Callable[[bool], None], on_answer: Callable[[], None] = lambda: None) -> None:
        """`on_focus` is called with each focus report, `on_answer` with each DA1 answer."""
        self._on_focus = on_focus
        self._on_answer = on_answer
        self._held = ""

    def feed(self, text: str) -> str:
        """Return the typed part of `text`, with Shift+Enter as Alt+Enter. A partial report at its end is held back."""
        text = _WHOLE.sub(self._take, self._held + text)
        begun = _BEGUN.search(text)
        self._held = begun.group() if begun else ""
        return text[: len(text) - len(self._held)]

    def flush(self) -> str:
        """Return held back input that was typed after all, as a single Escape is."""
        held, self._held = self._held, ""
        return held

    def _take(self, report: re.Match[str]) -> str:
        said = report.group()
        if said in {FOCUS_IN, FOCUS_OUT}:
            self._on_focus(said == FOCUS_IN)
        elif said.startswith("\x1b[?") and said.endswith("c"):
            self._on_answer()
        return ALT_ENTER if said in SHIFT_ENTER else ""  # other reports are dropped


class Pastes:
    """Collects a paste until it is complete. prompt_toolkit rescans the whole paste with each read: 9 s for 4 MB."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._end = ""

    def feed(self, text: str) -> str:
        """Return `text` without an incomplete paste, which is returned as a whole once its end arrives."""
        if not self._pieces:
            # The last beginning counts: a read may contain several complete pastes.
            begin = text.rfind(PASTE_BEGIN)
            if begin < 0 or PASTE_END in text[begin:]:
                return text
            self._pieces, self._end = [text[begin:]], text[begin:][-len(PASTE_END) :]
            return text[:begin]
        self._pieces.append(text)
        is_over = PASTE_END in self._end + text  # a read may split the end sequence, so look at the last characters too
        self._end = (self._end + text)[-len(PASTE_END) :]
        if not is_over:
            return ""
        whole, self._pieces = "".join(self._pieces), []
        return whole


class _Reader(PosixStdinReader):
    def __init__(self, fd: int, reports: Reports) -> None:
        super().__init__(fd)
        self._reports = reports
        self._pastes = Pastes()

    def read(self, count: int = 1024) -> str:
        return self._pastes.feed(self._reports.feed(super().read(count)))


class Keyboard(Vt100Input):
    """Keyboard input for an `Application`. prompt_toolkit alone would insert a late answer of the terminal as text.

    Shift+Enter becomes Alt+Enter (`escape`, `enter`) if the terminal distinguishes it from Enter. The modes that make other
    terminals do so are not enabled: in them Ctrl-C is sent as a sequence that prompt_toolkit does not know. Alt+Enter and
    Ctrl-J work everywhere.
    """

    def __init__(
        self,
        stdin: TextIO,
        *,
        on_focus: Callable[[bool], None],
        on_answer: Callable[[], None] = lambda: None,
        typed: bytes = b"",
    ) -> None:
        """Read keys from `stdin`.

        `on_focus` and `on_answer` are those of `Reports`. `typed` is input that was read before, as `Answer.typed`; the
        application gets it first.
        """
        super().__init__(stdin)
        self._reports = Reports(on_focus, on_answer)
        self.stdin_reader = _Reader(stdin.fileno(), self._reports)
        # Parse the early input into keys now, with our own callback, and store them as typeahead for the application.
        keys: list[KeyPress] = []
        self.vt100_parser.feed_key_callback, then = keys.append, self.vt100_parser.feed_key_callback
        self.vt100_parser.feed(self._reports.feed(typed.decode(errors="surrogateescape")))
        self.vt100_parser.feed_key_callback = then
        store_typeahead(self, keys)  # an application reads the typeahead of its input when it starts

    def flush_keys(self) -> list[KeyPress]:
        """Return held back keys, since no rest of a sequence has followed."""
        self.vt100_parser.feed(self._reports.flush())
        keys = super().flush_keys()
        # prompt_toolkit would wait a second for a second key after Escape. A key that is ignored ends the wait.
        return [*keys, KeyPress(Keys.Ignore, "")] if keys and keys[-1].key is Keys.Escape else keys
