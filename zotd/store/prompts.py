"""Prompt history of all sessions: the `input` records, newest first."""

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing

import msgspec
from msgspec import Struct

from zotd.store.connection import SqlConnection
from zotd.store.errors import is_damage
from zotd.store.forks import OWN
from zotd.wire.reports import PastPrompt

TEXT_BYTES = 64 * 1024
"""Longest prompt returned; longer ones, usually pasted files, are cut."""

MAX_KEY = 2**63 - 1
"""Above every key: the largest integer of SQLite."""

SLICE = 500
"""Prompts read at a time, which takes 2 ms; other readers get their turn in between."""

SLICE_BYTES = 4 * 1024 * 1024
"""Bytes read at a time, for prompts with images."""

KEYS = "SELECT key FROM records WHERE kind = 'input' AND key < ? ORDER BY key DESC LIMIT ?"
"""Uses only the index `records_input`: no record is read, because one of them may be damaged."""

_PROMPTS = f"""
SELECT records.key, records.body, sessions.id, sessions.cwd, records.time
FROM records JOIN sessions ON sessions.key = records.session
WHERE records.kind = 'input' AND records.key BETWEEN ? AND ? AND sessions.state <> 'staged'
    AND sessions.parent IS NULL AND {OWN}
ORDER BY records.key DESC
"""  # noqa: S608  (the condition is ours)
"""Prompts that a fork shares with another session are found in that session only; those of subagents are a model's."""


class _Block(msgspec.Struct):
    type: str
    text: str = ""


class _Input(msgspec.Struct):
    content: list[_Block]


_Found = tuple[int, bytes, str, str, str]
"""Key, body, session, directory and time of a prompt."""

_INPUT = msgspec.json.Decoder(_Input)


class Slice(Struct, frozen=True):
    """Prompts, newest first, each with the key of its record."""

    prompts: Sequence[tuple[int, PastPrompt]]
    end: int | None
    """Key below which the next slice begins; None if there are no more."""


def before(connection: SqlConnection, key: int) -> Slice:
    """Return the newest prompts with keys below `key`, except damaged ones and those without text."""
    keys = [found for (found,) in connection.execute(KEYS, (key, SLICE)).fetchall()]
    prompts: list[tuple[int, PastPrompt]] = []
    size = 0
    with closing(_read(connection, keys)) as found:
        for at, body, session, cwd, time in found:
            size += len(body)
            if text := _text(body):
                prompts.append((at, PastPrompt(text, session, cwd, time)))
            if size > SLICE_BYTES:
                return Slice(prompts, at)
    return Slice(prompts, keys[-1] if len(keys) == SLICE else None)


def _read(connection: SqlConnection, keys: Sequence[int]) -> Generator[_Found, None, None]:
    """Read the prompts with these keys; after a damaged page, read the remaining ones one by one."""
    if not keys:
        return
    above = MAX_KEY  # the key of the last prompt yielded: the second loop continues below it
    try:
        for prompt in connection.execute(_PROMPTS, (keys[-1], keys[0])):
            yield prompt
            above = prompt[0]
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        for key in keys:
            yield from _read_one(connection, key) if key < above else ()


def _read_one(connection: SqlConnection, key: int) -> Sequence[_Found]:
    try:
        return connection.execute(_PROMPTS, (key, key)).fetchall()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return ()  # skipped silently: the session reports the damage when it is opened


def _text(body: bytes) -> str:
    try:
        content = _INPUT.decode(body).content
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError):
        return ""
    text = "\n".join(block.text for block in content if block.type == "text").strip()
    return text.encode()[:TEXT_BYTES].decode(errors="ignore")
