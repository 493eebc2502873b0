"""The lines of an export in JSON: a session as a file, for people's programs and to be imported again.

| line | |
|---|---|
| `{"type": "session", "v": 1, …}` | the first one |
| `{"type": "record", "number": 1, "body": {…}}` | a record, whole: with the data of images |
| `{"type": "user_message", …, "seq": 1}` | the events that it showed, as clients got them; then the next record |
| `{"type": "end", "records": 817}` | the last one: nothing is missing |
"""

import msgspec

from zotd.core.ports import SessionRow, Stored
from zotd.core.records import Settings
from zotd.wire.base import Frozen, encode
from zotd.wire.version import VERSION

FORMAT = 1
"""`v` of the first line; a program that does not know it does not read on."""


class Header(Frozen, tag_field="type", tag="session", frozen=True, kw_only=True):
    """The first line."""

    v: int = 0
    id: str
    name: str
    cwd: str
    created: str
    settings: Settings
    version: str = ""
    """Version of the program that wrote the file."""


class RecordLine(Frozen, tag_field="type", tag="record", frozen=True):
    """A record; its events follow, a line each."""

    number: int
    body: msgspec.Raw


class EndLine(Frozen, tag_field="type", tag="end", frozen=True):
    """The last line."""

    records: int


def header(row: SessionRow) -> bytes:
    """The first line of the session's export."""
    line = Header(
        v=FORMAT,
        id=row.id,
        name=row.name,
        cwd=row.cwd,
        created=row.created,
        settings=row.settings,
        version=VERSION,
    )
    return encode(line) + b"\n"


def record(stored: Stored) -> bytes:
    """The lines of a record."""
    return encode(RecordLine(stored.number, msgspec.Raw(stored.body))) + b"\n" + stored.events


def end(records: int) -> bytes:
    """The last line."""
    return encode(EndLine(records)) + b"\n"
