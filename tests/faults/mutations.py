"""Frames that nobody should send, made from real ones: the same from the same seed.

A real frame of each command, with all its fields, is damaged as bytes (bits, cuts, splices, floods of brackets and
digits) or as a value (wrong types for every field, deep nesting, double keys). A damaged frame may happen to be a good
one, so what must not be done is not among the real ones: of `NEVER` come only frames that the daemon has to refuse.
"""

import random
from collections.abc import Callable, Mapping, Sequence

import msgspec

from zotd.wire.api import COMMANDS, CommandSpec
from zotd.wire.base import encode
from zotd.wire.plan import PlanStep

Frame = dict[str, object]

NEVER = frozenset(["daemon.shutdown", "ext.install", "session.close", "session.delete"])
"""Would end the check, fetch something from elsewhere, or leave nothing for the frames behind them to work on."""

LINE_LIMIT_EVERY = 100_000
"""Every so many frames one is longer than 16 MiB: 0.1 s of the daemon's time."""

DEEP_EVERY = 500
"""Every so many is nested 100,000 deep, which takes 100 kB."""

TOO_LONG = 17 * 1024 * 1024

BAD_TOKENS = (
    *(b"NaN", b"-Infinity", b"1e999", b"-0", b"00", b"1e", b"9" * 400, b"0." + b"3" * 400, b"null", b"true"),
    *(
        b'"\\ud800"',
        b'"\\udc00\\ud800"',
        b'"\xff"',
        b"\xed\xa0\x80",
        b"\x00",
        b"\r",
        b"\x85",
        b"\xe2\x80\xa8",
        b"\xef\xbb\xbf",
    ),
    *(b"[" * 200, b"]" * 200, b'{"a":' * 200, b"{}", b"[]", b'"', b"\\", b"\\u", b",", b":", b"\n", b"'", b"/*"),
)
"""Put anywhere into a frame."""

WRONG: Sequence[object] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        2**31,
        2**53 + 1,
        2**64,
        10**300,
        1.5,
        -1e308,
        "",
        "x",
        "\0",
        "\x1b[2J",
        "\u2028",
        "../..",
        "9" * 30,
        "9" * 5000,
        "2026-13-45T99:99:99Z",
        "9999-12-31T23:59:59-23:59",
    ),
    *("x" * 5000, [], [[]], [None], ["x", 1], [{}], {}, {"a": 1}, {"epoch": 1}, {"": {"": []}}),
)
"""Put in place of any field."""

VALUES: Mapping[str, object] = {
    "when_busy": "reject",
    "role": "admin",
    "protocol": [1, 1],
    "images": [],
    "topics": ["sessions", "extensions"],
    "ephemeral": True,
    "env": {"PATH": "/bin"},
    "tools": ["read"],
    "provider": "openai",
    "model": "gpt-4o",
    "kind": "file",
    "batch": "b",
    "prompts": [],
    "reasoning": "low",
    "mode": "yolo",
    "decision": "deny",
    "by": "model",
    "since": "2026-11-21T20:11:18Z",
    "key": "rune",
    "secrets": {"api_key": "sk-none"},
    "client": {"name": "faults", "kind": "test", "version": "1"},
    "servers": {"a": {"command": "/nowhere/at/all", "disabled": True}},
}
"""Of fields in real frames, by name; others have their default, and those without one something of their type."""

BY_TYPE: Mapping[object, object] = {str: "word", int: 3, bool: True, list[str]: [], list[PlanStep]: []}


class Mutations:
    """An endless supply of damaged frames."""

    def __init__(self, chance: random.Random, commands: Sequence[CommandSpec], known: Mapping[str, object]) -> None:
        """Of these commands; `known` are values of fields by name, such as `session`."""
        self._chance = chance
        self._real = [_real(command, known) for command in commands if command.name not in NEVER]
        self._refused = [_real(command, known) for command in commands if command.name in NEVER]
        self._lines = [encode(frame) for frame in self._real]
        self._made = 0
        self._ways: Sequence[Callable[[], bytes]] = (
            *(self._flipped, self._cut, self._spliced, self._with_token, self._without_a_piece, self._repeated),
            *(
                self._wrong_field,
                self._wrong_field,
                self._wrong_field,
                self._nested,
                self._doubled,
                self._foreign_field,
            ),
        )

    def lines(self, count: int) -> list[bytes]:
        """So many more, without their newlines; one may contain a newline."""
        return [self._next() for _ in range(count)]

    def _next(self) -> bytes:
        self._made += 1
        if self._made % LINE_LIMIT_EVERY == 0:
            return b'{"type":"ping","x":"' + b"x" * TOO_LONG + b'"}'
        if self._made % DEEP_EVERY == 0:
            return b'{"type":"ping","x":' + self._chance.choice([b"[", b'{"a":']) * 100_000
        if self._refused and self._chance.random() < 0.01:
            return self._never()
        return self._chance.choice(self._ways)()

    # --- as bytes ---

    def _line(self) -> bytes:
        return self._chance.choice(self._lines)

    def _place(self, line: bytes | bytearray) -> int:
        return self._chance.randrange(len(line))

    def _flipped(self) -> bytes:
        data = bytearray(self._line())
        for _ in range(self._chance.randint(1, 6)):
            data[self._place(data)] ^= 1 << self._chance.randrange(8)
        return bytes(data)

    def _cut(self) -> bytes:
        line = self._line()
        return line[: self._place(line)]

    def _spliced(self) -> bytes:
        head, tail = self._line(), self._line()
        return head[: self._place(head)] + tail[self._place(tail) :]

    def _with_token(self) -> bytes:
        line = self._line()
        at = self._place(line)
        return line[:at] + self._chance.choice(BAD_TOKENS) + line[at + self._chance.randrange(3) :]

    def _without_a_piece(self) -> bytes:
        line = self._line()
        at = self._place(line)
        return line[:at] + line[at + self._chance.randint(1, 12) :]

    def _repeated(self) -> bytes:
        line = self._line()
        at = self._place(line)
        return line[:at] + line[at : at + 20] * self._chance.choice([2, 50]) + line[at:]

    # --- as values ---

    def _wrong_field(self) -> bytes:
        frame = self._chance.choice(self._real)
        return _encoded({**frame, self._chance.choice(list(frame)): self._chance.choice(WRONG)})

    def _foreign_field(self) -> bytes:
        """A command with the fields of another one."""
        return _encoded({**self._chance.choice(self._real), "type": self._chance.choice(self._real)["type"]})

    def _nested(self) -> bytes:
        frame = self._chance.choice(self._real)
        value: object = "x"
        for _ in range(self._chance.choice([10, 60, 70, 500])):
            value = [value] if self._chance.random() < 0.5 else {"a": value}
        return _encoded({**frame, self._chance.choice(list(frame)): value})

    def _doubled(self) -> bytes:
        """Keys that come twice, the second time with another value."""
        frame = self._chance.choice(self._real)
        again = _encoded({self._chance.choice(list(frame)): self._chance.choice(WRONG)})
        return self._line()[:-1] + b"," + again[1:]

    def _never(self) -> bytes:
        """No field of these commands may be a list."""
        frame = self._chance.choice(self._refused)
        return _encoded({**frame, **{name: [] for name in list(frame)[2:]}})


def commands(*, stdio: bool) -> list[CommandSpec]:
    """Those of a carrier."""
    return [command for command in COMMANDS if command.stdio or not stdio]


def _real(command: CommandSpec, known: Mapping[str, object]) -> Frame:
    fields = {field.encode_name: _value(field, known) for field in msgspec.structs.fields(command.params)}
    return {"id": command.name, "type": command.name, **fields}


def _value(field: msgspec.structs.FieldInfo, known: Mapping[str, object]) -> object:
    if field.encode_name in known:
        return known[field.encode_name]
    if field.encode_name in VALUES:
        return VALUES[field.encode_name]
    if field.default is not msgspec.NODEFAULT:
        return field.default
    return BY_TYPE[field.type] if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def _encoded(frame: Frame) -> bytes:
    try:
        return encode(frame)
    except (OverflowError, RecursionError, UnicodeEncodeError):  # what our own encoder refuses to write
        return b'{"type":"ping","id":1e400}'
