"""All frames of the corpus: which files there are, which kinds belong in them, and how our code reads their lines.

python -m tests.corpus.frames        adds rows for kinds and fields that have none; no row is ever changed
"""

import json
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tests.corpus.examples import described, every_field, least
from zotd.wire import api, events, ext
from zotd.wire.base import convert, decode, encode
from zotd.wire.errors import Code

HERE = Path(__file__).parent

DAEMON = ("unix", "websocket")
"""Carriers of the daemon's protocol."""

STDIO_EVENTS = (
    *(events.UserMessage, events.TurnStart, events.AssistantStart, events.TextDelta),
    *(events.ToolUseStart, events.ToolUseArgs, events.ToolUseEnd, events.Usage, events.AssistantMessage),
    *(events.ToolCallEvent, events.TurnEnd, events.ToolProgress, events.ToolResultEvent, events.CompactDone),
    *(events.Error, events.Done, *events.STDIO_LIVE),
)
"""Events that every client of `zot rpc` has to know."""

Frame = dict[str, object]

TO_EXTENSION = msgspec.json.Decoder(ext.ToExtension)


class CorpusRow(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A row of any file; `README.md` says which have which fields."""

    id: str
    kind: str = ""
    carriers: list[str] = []
    meaning: str
    line: str = ""
    base64: str = ""
    means: Frame = {}
    answers: list[Frame] = []
    absent: list[str] = []
    steps: list[dict[str, Frame]] = []

    @property
    def data(self) -> bytes:
        """The line as it is sent, without its LF."""
        return b64decode(self.base64) if self.base64 else self.line.encode()


def rows_of(name: str) -> list[CorpusRow]:
    """Return the rows of a file of the corpus, oldest first."""
    # Not `splitlines`: U+2028 is data.
    lines = (HERE / name).read_text(encoding="utf-8").removesuffix("\n").split("\n")
    return [msgspec.json.decode(line, type=CorpusRow) for line in lines]


@dataclass(frozen=True, slots=True)
class FrameKind:
    """A kind of frame."""

    name: str
    meaning: str
    carriers: Sequence[str]
    shape: type[msgspec.Struct]
    """The Struct with its fields."""
    framed: Callable[[Frame], Frame]
    """Makes a frame of fields."""
    ignores_null: bool = False


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """A file of the corpus."""

    name: str
    kinds: Sequence[FrameKind]
    read: Callable[[bytes], Frame]
    """Reads a line as a receiver does; returns what it has understood, without what is absent."""

    @property
    def path(self) -> Path:
        return HERE / self.name

    def rows(self) -> list[CorpusRow]:
        """Return the rows, oldest first."""
        return rows_of(self.name) if self.path.exists() else []


def _of_extension(line: bytes) -> Frame:
    frame = ext.read(line)
    assert not isinstance(frame, ext.Skipped), frame.sentence
    return _plain(frame)


def _command(line: bytes) -> Frame:
    envelope = decode(line, api.Envelope)
    return {**_plain(envelope), **_plain(decode(line, api.BY_NAME[envelope.type].params))}


def _response(line: bytes) -> Frame:
    response = decode(line, api.Response)
    found = _plain(response)
    result = api.BY_NAME[response.command].result if response.command else None
    if response.success and result is not None:
        found["data"] = _plain(convert(response.data, result))
    return found


def _plain(value: msgspec.Struct) -> Frame:
    found: Frame = json.loads(encode(value))
    return found


def _tagged(shape: type[msgspec.Struct]) -> Callable[[Frame], Frame]:
    tag = str(shape.__struct_config__.tag)
    return lambda fields: {"type": tag, **fields}


def _of_union(union: object, carriers: Sequence[str], *, ignores_null: bool = False) -> list[FrameKind]:
    shapes: Sequence[type[msgspec.Struct]] = union.__args__  # type: ignore[attr-defined]
    return [
        FrameKind(str(shape.__struct_config__.tag), described(shape), carriers, shape, _tagged(shape), ignores_null)
        for shape in shapes
    ]


def _commands() -> Iterator[FrameKind]:
    for command in api.COMMANDS:
        carriers = (*DAEMON, "stdio") if command.stdio else DAEMON
        meaning = f"The daemon {command.summary}."
        yield FrameKind(command.name, meaning, carriers, command.params, _requested(command.name))


def _responses() -> Iterator[FrameKind]:
    for command in api.COMMANDS:
        carriers = (*DAEMON, "stdio") if command.stdio else DAEMON
        meaning = f"The command succeeded: it {command.summary}."
        shape = api.Nothing if command.result is None else command.result
        yield FrameKind(command.name, meaning, carriers, shape, _succeeded(command))
    for code in Code:
        meaning = f"The command failed with `{code}`; `error` is a sentence for people."
        yield FrameKind(f"failure {code}", meaning, (*DAEMON, "stdio"), api.Nothing, _failed(code))


def _requested(name: str) -> Callable[[Frame], Frame]:
    return lambda fields: {"type": name, "id": "c_1", **fields}


def _succeeded(command: api.CommandSpec) -> Callable[[Frame], Frame]:
    head: Frame = {"type": "response", "command": command.name, "success": True, "id": "c_1"}
    return lambda fields: head if command.result is None else {**head, "data": fields}


def _failed(code: Code) -> Callable[[Frame], Frame]:
    head: Frame = {"type": "response", "command": "ping", "success": False, "id": "c_1"}
    return lambda _: {**head, "error": "why it failed", "code": code.value}


FILES = (
    CorpusFile(
        "to_extension.jsonl", _of_union(ext.ToExtension, ("stdio",)), lambda line: _plain(TO_EXTENSION.decode(line))
    ),
    CorpusFile("from_extension.jsonl", _of_union(ext.FromExtension, ("stdio",), ignores_null=True), _of_extension),
    CorpusFile("commands.jsonl", list(_commands()), _command),
    CorpusFile("responses.jsonl", list(_responses()), _response),
    CorpusFile(
        "events.jsonl",
        [
            *_of_union(events.AnyEvent, DAEMON),
            *(
                FrameKind(f"{events.tag_of(shape)} on stdio", described(shape), ("stdio",), shape, _tagged(shape))
                for shape in STDIO_EVENTS
            ),
        ],
        lambda line: _plain(events.DECODER.decode(line)),
    ),
)


def missing(file: CorpusFile) -> Iterator[CorpusRow]:
    """Yield rows for the kinds and fields of which the file has none."""
    seen: dict[str, set[str]] = {}
    for row in file.rows():
        seen.setdefault(row.kind, set()).update(_members(json.loads(row.line)))
    for kind in file.kinds:
        fields = every_field(kind.shape)
        if kind.carriers == ("stdio",) and issubclass(kind.shape, events.Event):
            fields = {name: value for name, value in fields.items() if name not in {"session", "seq"}}
        if kind.name not in seen:
            yield from _first_rows(file, kind, fields)
        elif new := sorted(set(_members(kind.framed(fields))) - seen[kind.name]):
            yield _row(file, kind, f"with {', '.join(new)}", _line(kind.framed(fields)))


def _first_rows(file: CorpusFile, kind: FrameKind, fields: Frame) -> Iterator[CorpusRow]:
    needed = least(kind.shape)
    yield _row(file, kind, "least", _line(kind.framed(needed)))
    if fields == needed:
        return
    full = kind.framed(fields)
    yield _row(file, kind, "every field", _line(full))
    # Other order, escapes and blanks.
    later = dict(reversed([*full.items(), ("x_later", {"of": ["a later version"]})]))
    yield _row(file, kind, "every field, in another form", json.dumps(later))
    if kind.ignores_null:
        absent = dict.fromkeys(fields.keys() - needed.keys())
        yield _row(file, kind, "null for what is absent", _line({**kind.framed(needed), **absent}))


def _row(file: CorpusFile, kind: FrameKind, variant: str, line: str) -> CorpusRow:
    return CorpusRow(
        id=f"{kind.name}: {variant}",
        kind=kind.name,
        carriers=list(kind.carriers),
        meaning=kind.meaning,
        line=line,
        means=file.read(line.encode()),
    )


def _line(frame: Frame) -> str:
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":"))


def _members(value: object, above: str = "") -> Iterator[str]:
    """Yield the path of each member, such as `panel.title`, of what lies in a list without a number."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield f"{above}{name}"
            yield from _members(inner, f"{above}{name}.")
    elif isinstance(value, list):
        for inner in value:
            yield from _members(inner, above)


def _grow() -> None:
    for file in FILES:
        found = list(missing(file))
        with file.path.open("ab") as out:
            out.writelines(msgspec.json.encode(row) + b"\n" for row in found)


if __name__ == "__main__":
    _grow()
