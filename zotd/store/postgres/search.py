"""Full-text search on PostgreSQL: `zotd.store.search.Texts` with a `tsvector` for each message.

The words are found here and not by a configuration of the server: a search then finds the same with every database, locale
and language. The text is not stored again, because a hit is decoded from the record's events.
"""

import re
import unicodedata
from collections.abc import Sequence

from zotd.store.connection import SqlConnection
from zotd.store.forks import OWN
from zotd.store.search import LINE_BITS, MAX_ROWID, PLACES, SNIPPET_TOKENS, TERM, line_of, texts_of
from zotd.wire.reports import Hit

WORD_CHARS = 200
"""Indexed part of a word: PostgreSQL takes 2,046 bytes."""

LAST_PLACE = 16_383
"""Last position that a `tsvector` has; words behind it are found, but in no phrase."""

_WORD = re.compile(r"[^\W_]+")

_FIND = f"""
SELECT texts.rowid, records.key, sessions.id, sessions.name, sessions.cwd, records.first_seq, records.time, records.events
FROM texts
JOIN records ON records.key = texts.rowid >> :bits
JOIN sessions ON sessions.key = records.session
WHERE texts.words @@ CAST(:wanted AS tsquery) AND texts.rowid < :before AND sessions.state <> 'staged' AND {OWN}
ORDER BY texts.rowid DESC LIMIT :limit
"""  # noqa: S608  (the condition is ours)

_FORGET = "DELETE FROM texts WHERE rowid = ?"

_ADD = "INSERT INTO texts (rowid, role, words) VALUES (?, ?, CAST(? AS tsvector))"

_EMPTY = ("DELETE FROM texts", "UPDATE meta SET value = '0' WHERE key = 'searchable'")


class WordVectors:
    """`zotd.store.search.Texts` on PostgreSQL."""

    def find(self, connection: SqlConnection, query: str, before: int | None, limit: int) -> list[tuple[int, Hit]]:
        """Return messages with all words of `query`, newest first, each with the `before` value for the page after it."""
        terms = [
            words for phrase, word in TERM.findall(query.replace("\0", " ")) if (words := words_of(phrase or word))
        ]
        if not terms:
            return []
        below = MAX_ROWID if before is None else min(before, MAX_ROWID)
        # Words consist of letters and digits, so none of them can end its quotes.
        wanted = " & ".join(" <-> ".join(f"'{word}'" for word in words) for words in terms)
        form = {"bits": LINE_BITS, "wanted": wanted, "before": below, "limit": limit}
        first = {words[0] for words in terms}
        return [(place, _hit(place, columns, first)) for place, *columns in connection.execute(_FIND, form).fetchall()]

    def add(self, connection: SqlConnection, rows: Sequence[tuple[int, str, str]]) -> None:
        """Add texts, in place of those that have their numbers."""
        connection.executemany(_FORGET, [(number,) for number, _, _ in rows])
        connection.executemany(_ADD, [(number, role, _vector(text)) for number, text, role in rows])

    def begin_anew(self, connection: SqlConnection) -> None:
        """Delete all texts."""
        for statement in _EMPTY:
            connection.execute(statement)


def words_of(text: str) -> list[str]:
    """Return the words of a text in small letters and without accents."""
    return [_plain(word) for word in _WORD.findall(unicodedata.normalize("NFC", text))]


def _plain(word: str) -> str:
    if not word.isascii():
        apart = unicodedata.normalize("NFD", word)
        word = "".join(char for char in apart if char.isalnum())  # accents are no letters
    return word.lower()[:WORD_CHARS]


def _vector(text: str) -> str:
    return " ".join(f"'{word}':{min(place, LAST_PLACE)}" for place, word in enumerate(words_of(text), 1))


def _hit(place: int, columns: Sequence[object], first: set[str]) -> Hit:
    key, session, name, cwd, first_seq, time, events = columns
    assert isinstance(key, int)
    assert isinstance(first_seq, int)
    assert isinstance(events, bytes)
    # None if the event cannot be decoded any more; its session then says so when it is opened.
    text, role = next(((text, role) for number, text, role in texts_of(key, events) if number == place), ("", ""))
    return Hit(str(session), str(name), str(cwd), first_seq + place % PLACES, str(time), role, _snippet(text, first))


def _snippet(text: str, first: set[str]) -> str:
    """Return the words around the first match, about as many as SQLite would."""
    text = unicodedata.normalize("NFC", text)
    words = list(_WORD.finditer(text))
    match = next((place for place, word in enumerate(words) if _plain(word.group()) in first), 0)
    start = max(0, min(match - SNIPPET_TOKENS // 3, len(words) - SNIPPET_TOKENS))
    end = start + SNIPPET_TOKENS
    shown = text[words[start].start() if start else 0 : words[end - 1].end() if end < len(words) else len(text)]
    return line_of(f"{'…' if start else ''}{shown}{'…' if end < len(words) else ''}")
