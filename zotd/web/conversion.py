"""Converts a page into text, in a process of its own (`converter`) that ends with the call."""

import asyncio
import json
import sys
import tempfile
from contextlib import suppress
from typing import IO

from zotd.process import Child, ChildLedger, spawn
from zotd.web import converter
from zotd.web.errors import WebError
from zotd.web.fetching import WebPage

CONVERT_S = 30.0
"""How long a conversion may take."""

TEXT_BYTES = 10_000_000
"""Longest text that is taken from a conversion; the rest is left out."""

EMPTY = "[There is no text on the page. It may be made by a script; raw shows its source.]"

HTML = frozenset({"text/html", "application/xhtml+xml"})

PDF = "application/pdf"

_NEEDS = {"html": "html-to-markdown", "pdf": "pypdf"}


async def page_text(page: WebPage, *, cwd: str, ledger: str) -> str:
    """Return what a model reads of a page.

    Args:
        page: what was fetched.
        cwd: where the process runs; it opens nothing there.
        ledger: directory of the ledger of child processes; empty: none is kept.

    Raises WebError: the page is not text, and cannot be made text.
    """
    kind = _kind(page)
    if kind == "pdf" and page.is_cut:
        raise WebError(f"{page.url} is a PDF of more than {len(page.body):,} bytes; download it with a command")
    if kind in _NEEDS:
        return await _converted(page, kind, cwd=cwd, ledger=ledger)
    return source_text(page)


def _kind(page: WebPage) -> str:
    start = page.body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if page.media_type == PDF or start.startswith(b"%pdf-"):
        return "pdf"
    if page.media_type in HTML or (not page.media_type and start.startswith((b"<!doctype html", b"<html"))):
        return "html"
    return "text"


def source_text(page: WebPage) -> str:
    """Return a page that is text as it is; JSON in one line is laid out. Raises WebError: it is not text."""
    if b"\0" in page.body[:8192] and "utf-16" not in page.charset.lower():
        named = page.media_type or "a file of an unknown kind"
        raise WebError(f"{page.url} is not text but {named} ({len(page.body):,} bytes); download it with a command")
    text = converter.decoded(page.body, page.charset)
    if page.media_type == "application/json" or page.media_type.endswith("+json"):
        with suppress(ValueError, RecursionError):
            if "\n" not in text:  # else somebody has laid it out already
                return json.dumps(json.loads(text), indent=1, ensure_ascii=False)
    return text


async def _converted(page: WebPage, kind: str, *, cwd: str, ledger: str) -> str:
    argv = [sys.executable, "-I", "-X", "utf8", "-m", converter.__name__, kind, page.charset, page.url]
    output = bytearray()

    def take(data: bytes) -> None:
        if len(output) < TEXT_BYTES:
            output.extend(data)

    with tempfile.TemporaryFile() as file:
        await asyncio.to_thread(_written, file, page.body)
        child = spawn(
            argv,
            cwd=cwd,
            env={},
            on_output=take,
            stdin=file.fileno(),
            ledger=ChildLedger.of(ledger) if ledger else None,
        )
        code = await _end_of(child)
    text = output[:TEXT_BYTES].decode(errors="replace")
    if code == converter.MISSING:
        note = f"[The source of the page, because {_NEEDS[kind]} is not installed: pip install 'zotd[web]'.]\n\n"
        if kind == "html":
            return note + converter.decoded(page.body, page.charset)
        raise WebError(f"{page.url} is a PDF, and {_NEEDS[kind]} is not installed: pip install 'zotd[web]'")
    if code is None:
        raise WebError(f"{page.url} was not converted to text within {CONVERT_S:g} s; download it with a command")
    if code:
        what = text.strip().splitlines()[-1][:300] if code == converter.FAILED and text.strip() else f"exit {code}"
        raise WebError(f"{page.url} cannot be converted to text ({what}); fetch it with raw, or download it")
    return text if text.strip() else EMPTY


def _written(file: IO[bytes], data: bytes) -> None:
    file.write(data)
    file.flush()
    file.seek(0)


async def _end_of(child: Child) -> int | None:
    """Return the exit code; None if it took too long. The child is ended in any case."""
    with suppress(TimeoutError):
        async with asyncio.timeout(CONVERT_S), child:
            return await child.wait()
    return None
