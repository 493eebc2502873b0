"""Reads an export in JSON lines (`zotd.history.jsonl`): every record and every event, under a new id."""

from typing import TypeVar

import msgspec

from zotd.core import records
from zotd.core.records import AnyRecord
from zotd.history import jsonl
from zotd.history.draft import Draft
from zotd.history.import_source import BadLineError, OpenCalls, SourceSession
from zotd.wire import events

T = TypeVar("T")


class _Head(msgspec.Struct):
    type: str = ""


_HEAD = msgspec.json.Decoder(_Head)
_HEADER = msgspec.json.Decoder(jsonl.Header)
_RECORD = msgspec.json.Decoder(jsonl.RecordLine)
_END = msgspec.json.Decoder(jsonl.EndLine)


class ExportFile:
    """The lines of one file, from the first to the last."""

    def __init__(self) -> None:
        self._header: jsonl.Header | None = None
        self._record: AnyRecord | None = None
        self._shown: list[events.Event] = []
        self._open = OpenCalls()
        self._time = ""
        self._ended = False

    def take(self, line: bytes, draft: Draft) -> None:
        """Add what the line says; raises ValueError with what is wrong with it."""
        if self._ended:
            raise BadLineError("there are lines after the end")
        match _decoded(_HEAD, line).type:
            case "session":
                self._begin(_decoded(_HEADER, line))
            case "record":
                self._next(_decoded(_RECORD, line), draft)
            case "end":
                self._finish(_decoded(_END, line), draft)
            case _:
                self._show(_decoded(events.DECODER, line), draft)

    def end(self, draft: Draft) -> SourceSession:
        """Close what was open when the session was exported; raises ValueError when the file is cut."""
        if self._header is None or not self._ended:
            raise BadLineError("the file ends in the middle; export the session again")
        self._open.close(draft, run="", time=self._time)
        told = self._header
        return SourceSession(told.id, told.name, told.cwd, told.created, told.settings)

    def _begin(self, told: jsonl.Header) -> None:
        if self._header is not None:
            raise BadLineError("another session begins")
        if told.v != jsonl.FORMAT:
            raise BadLineError(f"zotd {told.version} wrote it, which is newer; update this one")
        self._header = told

    def _next(self, line: jsonl.RecordLine, draft: Draft) -> None:
        self._flush(draft)
        due = draft.row.records + 1
        if line.number != due:
            raise BadLineError(f"it has record {line.number} where {due} is due")
        record = _decoded(records.DECODER, line.body)
        if record.v > records.VERSION:
            raise BadLineError("a newer version wrote it; update this one")
        self._record, self._time = record, record.time

    def _show(self, event: events.Event, draft: Draft) -> None:
        due = draft.row.seq + len(self._shown) + 1
        if self._record is None or event.seq != due:
            raise BadLineError(f"it has event {event.seq} where {due} is due")
        self._shown.append(event)

    def _finish(self, line: jsonl.EndLine, draft: Draft) -> None:
        self._flush(draft)
        if line.records != draft.row.records:
            raise BadLineError(f"there should be {line.records} records, and there are {draft.row.records}")
        self._ended = True

    def _flush(self, draft: Draft) -> None:
        """Add the record whose last event has come."""
        record, self._record = self._record, None
        shown, self._shown = self._shown, []
        if record is not None:
            draft.add(record, shown)
            self._open.follow(record)


def _decoded(decoder: msgspec.json.Decoder[T], line: bytes | msgspec.Raw) -> T:
    try:
        return decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadLineError(f"it cannot be read: {error}") from error
