r"""The one table of characters from outside that may not reach a terminal as they are, and what is written instead.

    harmless      lines for people: newlines and tabs stay, colours are dropped, the rest becomes visible
    one_line      the same in a row of a table or a sentence
    blanked       a short text for a title or a notification: a space instead of each run
    escaped       a line of a log: `\x1b`, `\u202e`
    json_line     JSON, which stays the same value: `\u001b`
    coloured      pieces of a line for people with the looks (SGR) that a program has given them

Models, tools, extensions, repositories and other people write such text. Whatever prints it calls one of these; a test
looks for prints that do not. `zotd/api/page/hidden.js` is generated from this table (`scripts/reference.py`).

Regular expressions only, because clients import this before their first byte of output. All of it is linear in the text.
"""

import re
from collections.abc import Mapping
from functools import cache

RANGES = (
    (0x00, 0x08),
    (0x0B, 0x1F),
    (0x7F, 0x9F),  # DEL, and C1: U+009B begins a sequence as ESC [ does
    (0xAD, 0xAD),  # soft hyphen
    (0x061C, 0x061C),  # Arabic letter mark
    (0x180E, 0x180E),
    (0x200B, 0x200B),  # zero width space
    (0x200E, 0x200F),  # direction marks
    (0x2028, 0x202E),  # line and paragraph separators; embeddings and overrides of direction (CVE-2021-42574)
    (0x2060, 0x206F),  # word joiner, invisible operators, isolates
    (0xD800, 0xDFFF),  # halves of surrogate pairs: no terminal can be sent them
    (0xFEFF, 0xFEFF),
    (0xFFF9, 0xFFFB),
    (0xE0000, 0xE007F),  # tags: a whole ASCII alphabet that shows nothing
)
"""Characters that steer a terminal, turn text around, or show nothing: all but newline and tab."""

JOINERS = ((0x200C, 0x200D),)
"""Persian words and emoji are made with them, so one stays; not between ASCII characters, and not several in a row."""

SELECTORS = ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
"""One chooses between forms of the character before it; several in a row can only hide something."""

COLOURS = r"\x1b\[[\d;:]*m"
"""The sequence that sets colours and other looks (SGR)."""

SGR = re.compile(COLOURS)
REPLACEMENT = "\ufffd"


def pattern(escape: str = "python") -> str:
    """The source of the regular expression; `escape` is `python`, or `js` for one with the flag `u`."""
    hidden, joiners, selectors = (_class(ranges, escape) for ranges in (RANGES, JOINERS, SELECTORS))
    return rf"[{hidden}]|[{joiners}]{{2,}}|[{selectors}]{{2,}}|(?<=[\x00-\x7f])[{joiners}](?![^\x00-\x7f])"


def _class(ranges: tuple[tuple[int, int], ...], escape: str) -> str:
    return "".join(f"{_code(first, escape)}-{_code(last, escape)}" for first, last in ranges)


def _code(code: int, escape: str) -> str:
    return f"\\u{{{code:x}}}" if escape == "js" else f"\\U{code:08x}"


_ASCII = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@cache
def _suspect() -> re.Pattern[str]:
    """Finds out quickly that nothing has to be done, which is so of nearly all text.

    Compiled at first use, as the others: a set of characters beyond Latin-1 takes milliseconds.
    """
    return re.compile(f"[{_class(RANGES + JOINERS + SELECTORS, 'python')}]")


@cache
def _hidden() -> re.Pattern[str]:
    return re.compile(pattern())


def _is_clean(text: str) -> bool:
    return not _ASCII.search(text) and (text.isascii() or not _suspect().search(text))


def harmless(text: str) -> str:
    """The same lines, with nothing in them that does more than to be seen.

    Newlines and tabs stay. CRLF becomes LF, colours are dropped, other control characters become `^[`, what is
    invisible or changes direction `<U+202E>`, halves of surrogate pairs U+FFFD.
    """
    if _is_clean(text):
        return text
    return _hidden().sub(_visible, SGR.sub("", text).replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """`harmless`, with a space for each newline and tab: it cannot begin another line."""
    return harmless(text).replace("\n", " ").replace("\t", " ")


def blanked(text: str) -> str:
    """One line with one space for blanks and for each run of characters that `harmless` would replace."""
    text = SGR.sub("", text)
    if not _is_clean(text):
        text = _hidden().sub(" ", text)
    return " ".join(text.split())


def escaped(text: str) -> str:
    """One line, with such characters as Python writes them in a string; what it said can be found out."""
    if not _is_clean(text):
        text = _hidden().sub(lambda found: "".join(map(_escape, found[0])), text)
    return text.replace("\t", "\\t").replace("\n", "\\n")


def json_line(line: str) -> str:
    """The same JSON value: such characters can only stand inside a string, and are escaped there."""
    if _is_clean(line):
        return line
    return _hidden().sub(lambda found: "".join(map(_json_escape, found[0])), line)


def is_harmless(text: str) -> bool:
    """Whether it is one line that needs none of these."""
    return "\n" not in text and "\t" not in text and (_is_clean(text) or not _hidden().search(text))


def visible(line: str) -> list[str]:
    """What is shown for each character of a line; joined, what `harmless` gives, but for colours, which are shown too."""
    shown = list(line)
    if not _is_clean(line):
        for found in _hidden().finditer(line):
            shown[found.start() : found.end()] = map(_shown, found[0])
    return shown


Looks = Mapping[str, str]
"""How text looks: for each of its looks (a colour, `bold`, …) the parameters of the SGR sequence that sets it."""

PLAIN: Looks = {}

_ON = {"1": "bold", "2": "dim", "3": "italic", "4": "underline", "7": "reverse", "9": "strike"}
"""Looks that are kept. Not blinking, and not 8, which hides."""

_OFF = {"22": ("bold", "dim"), "23": ("italic",), "24": ("underline",), "27": ("reverse",), "29": ("strike",)}
_GROUND = {"39": "text", "49": "ground"}
_DEEP = {"38": "text", "48": "ground"}
_MAX_DEEP = {"5": 1, "2": 3}
"""Numbers behind `38;5` (a colour of 256) and `38;2` (red, green, blue)."""


def coloured(line: str, looks: Looks = PLAIN) -> tuple[list[tuple[str, str]], Looks]:
    """(parameters of SGR, text) pieces, whose texts are together what `harmless` gives; and how the next line begins.

    `looks`: how this line begins. Parameters are digits and semicolons; empty: nothing was said about that text.
    """
    # Like `harmless`, all that is hidden is looked for in the text without its colours.
    shown, at, pieces = visible(SGR.sub("", line)), 0, []
    taken = 0
    for found in SGR.finditer(line):
        end = at + found.start() - taken
        pieces.append((";".join(looks.values()), "".join(shown[at:end])))
        looks, at, taken = _after(looks, found[0][2:-1]), end, found.end()
    pieces.append((";".join(looks.values()), "".join(shown[at:])))
    return [piece for piece in pieces if piece[1]], looks


def _after(looks: Looks, parameters: str) -> Looks:
    """The looks when such a sequence has been written."""
    now = dict(looks)
    codes = iter(re.split("[;:]", parameters))
    for code in codes:
        if code.strip("0") == "":
            now.clear()
        elif code in _ON:
            now[_ON[code]] = code
        elif code in _DEEP:
            depth = next(codes, "")
            numbers = [number for number, _ in zip(codes, range(_MAX_DEEP.get(depth, 0)), strict=False)]
            if numbers and all(number.isdecimal() and int(number) < 256 for number in numbers):
                now[_DEEP[code]] = ";".join([code, depth, *numbers])
        elif code in _GROUND:
            now.pop(_GROUND[code], None)
        elif re.fullmatch("[39][0-7]", code):
            now["text"] = code
        elif re.fullmatch("4[0-7]|10[0-7]", code):
            now["ground"] = code
        for name in _OFF.get(code, ()):
            now.pop(name, None)
    return now


def _visible(found: re.Match[str]) -> str:
    return "".join(map(_shown, found[0]))


def _shown(character: str) -> str:
    code = ord(character)
    if code < 0x20 or code == 0x7F:
        return f"^{chr(code ^ 0x40)}"
    return REPLACEMENT if 0xD800 <= code < 0xE000 else f"<U+{code:04X}>"


def _escape(character: str) -> str:
    return repr(character)[1:-1] if not character.isprintable() else f"\\u{ord(character):04x}"


def _json_escape(character: str) -> str:
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
