"""Forty ways to steer a terminal or to hide something, and a daemon whose every word has them."""

import json
import re
import socket
import threading
import unicodedata
from contextlib import contextmanager, suppress

from zotd.wire.version import PROTOCOL, VERSION

SEQUENCES = (
    "\x1b]52;c;QUJD\x07",  # writes the clipboard
    "\x1b]52;c;?\x1b\\",  # reads it
    "\x1b]0;title\x07",
    "\x1b]2;title\x1b\\",
    "\x1b]8;;http://evil\x1b\\x",  # a link
    "\x1b]9;note\x07",
    "\x1b]777;notify;a;b\x07",
    "\x1b]1337;File=:QQ==\x07",
    "\x1bP$q m\x1b\\",  # DCS
    "\x1bPtmux;\x1b\x1b]0;t\x07\x1b\\",
    "\x1b_APC\x1b\\",
    "\x1b^PM\x1b\\",
    "\x1bXSOS\x1b\\",
    "\x1b[2J\x1b[H",
    "\x1b[1A\x1b[2K",
    "\x1b[?1049h",
    "\x1b[?1000h",  # mouse
    "\x1b[6n",  # answers on the keyboard
    "\x1b[21t",
    "\x1bc",  # reset
    "\x1b[8mhidden",  # SGR: concealed
    "\x9b31m",  # CSI in one character
    "\x9d0;t\x9c",
    "\x90q\x9c",
    "\x85next line",
    "over\rwritten",
    "\x07\x07",
    "abc\x08\x08\x08",
    "\x7f",
    "\x00",
    "\x0e\x0f",  # other character sets
    "\x0b\x0c",
    "\u202egpj.exe",
    "\u2066\u2067a\u2069",
    "\u200e\u200f\u061c",
    "a\u200d\u200db",
    "r\u200cm",
    "\u200b\ufeff\u2060",
    "\U000e0041\U000e0042\U000e007f",  # tags
    "\ud83d",  # half of a pair
)

STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode's categories of what is no visible character: an opinion that is not ours."""

OWN_COLOURS = re.compile(r"\x1b\[[\d;]*m")


def hostile(number: int) -> str:
    return f"<{number}:{SEQUENCES[number]}>"


WORDS = [hostile(number) for number in range(len(SEQUENCES))]
BLOB = "\n".join(WORDS)


def is_steering(character: str) -> bool:
    return unicodedata.category(character) in STEERING and character not in "\n\t"


def failures(shown: str, *, own: re.Pattern[str] = OWN_COLOURS) -> dict[int, str]:
    """By sequence: `missing` when its word was not shown at all, else the characters that came through."""
    cleaned = own.sub("", shown).replace("\r\n", "\n")
    found = {}
    for number in range(len(SEQUENCES)):
        at = cleaned.find(f"<{number}:")
        if at < 0:
            found[number] = "missing"
            continue
        word = cleaned[at : at + len(SEQUENCES[number]) + 8].partition("\n")[0]
        bad = [character for character in word if is_steering(character)]
        if bad:
            found[number] = repr(bad)
    rest = set(filter(is_steering, cleaned))
    if rest and not found:
        found[-1] = repr(sorted(rest))
    return found


KEYS = [
    "about",
    "action",
    "branch",
    "by",
    "channel",
    "command",
    "commit",
    "cost",
    "cwd",
    "day",
    "description",
    "detail",
    "digest",
    "direction",
    "error",
    "expires",
    "extension",
    "extensions",
    "file",
    "footer",
    "id",
    "input",
    "key",
    "level",
    "message",
    "model",
    "name",
    "next",
    "origin",
    "path",
    "place",
    "preview",
    "project",
    "prompt",
    "provider",
    "reason",
    "role",
    "rule",
    "sender",
    "session",
    "since",
    "snippet",
    "source",
    "state",
    "text",
    "time",
    "title",
    "token",
    "tool",
    "updated",
    "version",
    "what",
]

LISTS = [
    "approvals",
    "branches",
    "budgets",
    "changed",
    "channels",
    "conflicts",
    "extensions",
    "files",
    "findings",
    "forks",
    "hits",
    "items",
    "messages",
    "models",
    "notes",
    "paired",
    "reloaded",
    "rows",
    "sessions",
    "tokens",
    "trusted",
    "vendors",
    "waiting",
    "workspaces",
    "errors",
]


def row(number: int) -> dict[str, object]:
    word = hostile(number)
    content = [{"type": "text", "text": word}]
    words = {name: [word] for name in ("items", "tools", "commands", "sessions")}
    return {**dict.fromkeys(KEYS, word), **words, "content": content, "args": {"command": word}, "seq": 1}


ROWS = [row(number) for number in range(len(SEQUENCES))]

SESSION = {"id": "s_1", "name": BLOB, "model": BLOB, "provider": BLOB, "state": "idle", "cwd": BLOB, "mode": BLOB}

EVERYTHING = {
    **dict.fromkeys(KEYS, BLOB),
    **dict.fromkeys(LISTS, ROWS),
    **dict.fromkeys(("applied", "restart", "warnings", "problems", "stopped", "loaded", "ready", "missing"), WORDS),
    "id": "s_1",
    "session": SESSION,
    "mode": "resumed",
    "state": "running",
    "epoch": "e",
    "seq": 0,
    "pid": 1,
    "next": None,
    "cursor": None,
    "input": "i_1",
    "run": "r_1",
    "started": True,
    "protocol_version": PROTOCOL,
    "protocol": PROTOCOL,
    "version": VERSION,
}
"""The answer to every command."""

AFTER_ATTACH = [
    *({"type": "notice", "text": word, "seq": 1} for word in WORDS),
    {"type": "assistant_message", "content": [{"type": "text", "text": BLOB}], "seq": 2},
    {"type": "replay_complete", "seq": 2},
]

RUN = [
    {"type": "user_message", "input": "i_1", "run": "r_1", "content": [{"type": "text", "text": BLOB}], "seq": 3},
    *({"type": "notice", "text": word, "seq": 3} for word in WORDS),
    {"type": "text_delta", "delta": BLOB},
    {"type": "assistant_message", "content": [{"type": "text", "text": BLOB}], "seq": 4},
]


FRAMES = [{"type": "ext_frame", "frame": word, "direction": "in", "time": ""} for word in WORDS]


@contextmanager
def lying_daemon(path, *, ending=(), answers=None, closes_after=None):
    """Answers every command with `EVERYTHING`, or what `answers` says by command.

    A run ends with the events `ending`. The connection ends with the events that follow the command `closes_after`.
    """
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        thread = threading.Thread(target=_serve, args=(listener, ending, answers or {}, closes_after))
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)


def _serve(listener, ending, answers, closes_after):
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with suppress(OSError), connection, connection.makefile("rwb") as stream:
            for line in stream:
                request = json.loads(line)
                _answer(stream, request, ending, answers)
                if request["type"] == closes_after:
                    break


def _answer(stream, request, ending, answers):
    command = request["type"]
    response = {"type": "response", "command": command, "id": request.get("id"), "success": True, "data": EVERYTHING}
    following = {"attach": AFTER_ATTACH, "prompt": [*RUN, *ending], "ext.tap": FRAMES}
    events = [{"session": "s_1", **event} for event in following.get(command, [])]
    lines = [json.dumps(frame).encode() + b"\n" for frame in (response | answers.get(command, {}), *events)]
    stream.write(b"".join(lines))
    stream.flush()
