"""What models, tools and other people have written, made unable to steer the terminal."""

import re

TAB_COLUMNS = 4
"""Distance of tab stops: source code is what tabs are in, and half of what a terminal does is enough there."""

SGR = re.compile(r"\x1b\[[\d;:]*m")
"""The sequence that sets colours and other looks."""

_STEERING = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(text: str) -> str:
    """The same text, with nothing in it that does more than to be seen; newlines stay.

    Colours, which many programs write, are dropped. Other control characters are shown as `^[`, changes of direction as
    `<U+202E>`: someone may have wanted to hide something. Tabs become spaces, line ends LF, halves of surrogate pairs,
    which no terminal can be sent, U+FFFD.
    """
    if not _STEERING.search(text):
        return text
    text = SGR.sub("", text).replace("\r\n", "\n").expandtabs(TAB_COLUMNS)
    return _STEERING.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20 or code == 0x7F:
        return f"^{chr(code ^ 0x40)}"
    if 0xD800 <= code < 0xE000:
        return "\ufffd"
    return f"<U+{code:04X}>"
