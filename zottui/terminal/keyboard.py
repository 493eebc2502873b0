"""The keyboard of a prompt_toolkit application, without what the terminal itself says between the keys."""

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
"""As terminals send it that tell it from Enter: CSI u, and xterm's modifyOtherKeys."""

ALT_ENTER = "\x1b\r"

PASTE_BEGIN, PASTE_END = "\x1b[200~", "\x1b[201~"

ESCAPE_S = 0.05
"""For `Application.ttimeoutlen`: how long Escape waits for the rest of a sequence; terminals send that in one write."""

REPORT_CHARS = 256
"""The longest report that is held back until its end comes; what is longer was typed."""

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
    """Takes answers and reports of the terminal out of what is typed, however it is cut into pieces."""

    def __init__(self, on_focus: Callable[[bool], None], on_answer: Callable[[], None] = lambda: None) -> None:
        """`on_focus` is told whether the terminal has the focus, each time it says so; `on_answer`, that it says what it is."""
        self._on_focus = on_focus
        self._on_answer = on_answer
        self._held = ""

    def feed(self, text: str) -> str:
        """What of it was typed; Shift-Enter has become Alt-Enter. The beginning of a report is held back."""
        text = _WHOLE.sub(self._take, self._held + text)
        begun = _BEGUN.search(text)
        self._held = begun.group() if begun else ""
        return text[: len(text) - len(self._held)]

    def flush(self) -> str:
        """What was held back, because it has turned out to be typed: the Escape key, for one."""
        held, self._held = self._held, ""
        return held

    def _take(self, report: re.Match[str]) -> str:
        said = report.group()
        if said in {FOCUS_IN, FOCUS_OUT}:
            self._on_focus(said == FOCUS_IN)
        elif said.startswith("\x1b[?") and said.endswith("c"):
            self._on_answer()
        return ALT_ENTER if said in SHIFT_ENTER else ""  # an answer that nobody waits for any more


class Pastes:
    """Keeps a paste together: prompt_toolkit looks through all that it has of one whenever more comes, 9 s for 4 MB."""

    def __init__(self) -> None:
        """None is under way."""
        self._pieces: list[str] = []
        self._end = ""

    def feed(self, text: str) -> str:
        """The text, without the beginning of a paste; that comes when its end has come."""
        if not self._pieces:
            begin = text.rfind(PASTE_BEGIN)
            if begin < 0 or PASTE_END in text[begin:]:
                return text
            self._pieces, self._end = [text[begin:]], text[begin:][-len(PASTE_END) :]
            return text[:begin]
        self._pieces.append(text)
        is_over = PASTE_END in self._end + text
        self._end = (self._end + text)[-len(PASTE_END) :]
        if not is_over:
            return ""
        whole, self._pieces = "".join(self._pieces), []
        return whole


class _Reader(PosixStdinReader):
    """Reads what was typed."""

    def __init__(self, fd: int, reports: Reports) -> None:
        super().__init__(fd)
        self._reports = reports
        self._pastes = Pastes()

    def read(self, count: int = 1024) -> str:
        return self._pastes.feed(self._reports.feed(super().read(count)))


class Keyboard(Vt100Input):
    """Keys for an `Application`. prompt_toolkit would insert a late answer of the terminal as if it were typed.

    Shift-Enter comes as Alt-Enter, (`escape`, `enter`), from terminals that tell it from Enter. Nothing is asked for to
    make others do so: in the modes for that Ctrl-C comes in a form that prompt_toolkit does not know. Alt-Enter and Ctrl-J
    work everywhere.
    """

    def __init__(
        self,
        stdin: TextIO,
        *,
        on_focus: Callable[[bool], None],
        on_answer: Callable[[], None] = lambda: None,
        typed: bytes = b"",
    ) -> None:
        """`on_focus`, `on_answer`: as `Reports` has them. `typed`: what somebody else has read from it already, as `Answer.typed`; the application gets it first."""
        super().__init__(stdin)
        self._reports = Reports(on_focus, on_answer)
        self.stdin_reader = _Reader(stdin.fileno(), self._reports)
        keys: list[KeyPress] = []
        self.vt100_parser.feed_key_callback, then = keys.append, self.vt100_parser.feed_key_callback
        self.vt100_parser.feed(self._reports.feed(typed.decode(errors="surrogateescape")))
        self.vt100_parser.feed_key_callback = then
        store_typeahead(self, keys)

    def flush_keys(self) -> list[KeyPress]:
        """What was held back as the possible beginning of something longer: nothing came behind it."""
        self.vt100_parser.feed(self._reports.flush())
        keys = super().flush_keys()
        # prompt_toolkit would wait another second for what Escape might be the first key of; a key that is none ends that.
        return [*keys, KeyPress(Keys.Ignore, "")] if keys and keys[-1].key is Keys.Escape else keys
