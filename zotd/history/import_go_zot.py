"""Reads a session file of the original program: a row of JSON on each line.

    {"type": "meta", "meta": {"id", "cwd", "model", "provider", "started", "title"?, ...}}   first; later ones override
    {"type": "message", "message": {"role": "user" | "assistant" | "tool", "content": [...], "time"}}
    {"type": "usage", "usage": {"input_tokens", ...}, "cumulative": {...}}
    {"type": "rename", "title"}
    {"type": "compaction", "messages": [...]}       what the model sees from here on, instead of everything before

A block of content is told by its fields: `text`; `mime_type` and `data`; `id`, `name` and `arguments`; `call_id`,
`content` and `is_error`. Reasoning is signed for one vendor's next request, and not taken over. Calls get ids of our
own, for those of the file are unique in a run at best.
"""

import binascii
from collections import Counter
from datetime import UTC, datetime

import msgspec

from zotd import ids
from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.ports import NAME_CHARS
from zotd.core.records import Settings
from zotd.history.draft import Draft
from zotd.history.import_source import BadLineError, OpenCalls, SourceSession
from zotd.ledger.titles import title_of
from zotd.wire import events
from zotd.wire.content import Block, Image, Text, Tokens, ToolCall, ToolContent, ToolResult, visible

SUMMARY_HEAD = "## Context Summary (compacted)"
"""Begins the message that a compaction puts in the place of what was said."""

KNOWN_ROWS = ("meta", "message", "usage", "rename", "compaction")


class _Block(msgspec.Struct):
    text: str | None = None
    mime_type: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    arguments: dict[str, object] | None = None
    call_id: str | None = None
    content: list["_Block"] | None = None
    is_error: bool = False


class _Message(msgspec.Struct):
    role: str
    content: list[_Block] | None = None
    time: str = ""


class _Meta(msgspec.Struct):
    id: str = ""
    cwd: str = ""
    model: str = ""
    provider: str = ""
    started: str = ""
    title: str = ""


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float = 0.0


class _Row(msgspec.Struct):
    type: str
    meta: _Meta | None = None
    message: _Message | None = None
    messages: list[_Message] | None = None
    usage: _Usage | None = None
    cumulative: _Usage | None = None
    title: str = ""


_ROW = msgspec.json.Decoder(_Row)


class Original:
    """The rows of one file, from the first to the last."""

    def __init__(self) -> None:
        self._meta: _Meta | None = None
        self._name = ""
        self._time = ""
        self._run = ids.new("r")
        self._step = 0
        self._ids: dict[str, str] = {}
        """Our ids of the calls of the last reply."""
        self._open = OpenCalls()
        self._took = Tokens()
        self._unknown: Counter[str] = Counter()
        self._is_torn = False

    def take(self, line: bytes, draft: Draft) -> None:
        """Add what the row says; raises ValueError with what is wrong with it."""
        try:
            row = _ROW.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            if self._meta is not None and not line.endswith(b"\n"):
                self._is_torn = True  # the program was killed while it wrote the row, and reads on without it itself
                return
            raise BadLineError(f"it cannot be read: {error}") from error
        self._add(row, draft)

    def _add(self, row: _Row, draft: Draft) -> None:
        if self._meta is None and row.meta is None:
            raise BadLineError("not a session file of zot: the first line has no `meta`")
        match row:
            case _Row(type="meta", meta=_Meta() as meta):
                self._configure(meta, draft)
            case _Row(type="message", message=_Message() as message):
                self._say(message, draft, shown=True)
            case _Row(type="usage"):
                self._count(row, draft)
            case _Row(type="rename", title=title):
                self._name = title
            case _Row(type="compaction", messages=messages):
                self._compact(messages or [], draft)
            case _Row(type=kind) if kind in KNOWN_ROWS:
                raise BadLineError(f"the row {kind} lacks its content")
            case _Row(type=kind):
                self._unknown[kind] += 1

    def end(self, draft: Draft) -> SourceSession:
        """Give the calls of the last reply their results."""
        meta = self._meta
        assert meta is not None
        self._open.close(draft, run=self._run, time=self._now())
        left_out = [f"{count} rows of the unknown kind {kind}" for kind, count in self._unknown.items()]
        left_out += ["the last line, which was cut"] if self._is_torn else []
        return SourceSession(
            session=meta.id,
            name=" ".join(self._name.split())[:NAME_CHARS],
            cwd=meta.cwd,
            created=_time(meta.started) or "",
            settings=Settings(provider=meta.provider, model=meta.model),
            left_out=", ".join(left_out) or None,
        )

    # --- rows ---------------------------------------------------------------------------------------------------

    def _configure(self, meta: _Meta, draft: Draft) -> None:
        first = self._meta or meta
        self._meta = msgspec.structs.replace(
            meta, id=first.id or meta.id, cwd=meta.cwd or first.cwd, started=first.started or meta.started
        )
        self._name = meta.title or self._name
        self._time = self._time or _time(meta.started) or ""
        settings = Settings(provider=meta.provider, model=meta.model)
        draft.add(records.ConfigRecord(time=self._now(), settings=settings, name=self._name))

    def _say(self, message: _Message, draft: Draft, *, shown: bool) -> None:
        """Add a message; one that is not `shown` is for the model: people have seen it."""
        self._time = _time(message.time) or self._time
        rest: list[Block] = []
        for block in message.content or []:
            if block.call_id is not None:
                self._answer(block, draft, shown=shown)
            elif (known := _block(block)) is not None:
                rest.append(known)
        if not rest:
            return
        self._open.close(draft, run=self._run, time=self._now())
        if message.role == "assistant":
            self._reply(rest, draft, shown=shown)
        else:
            self._prompt([block for block in rest if not isinstance(block, ToolCall)], draft, shown=shown)

    def _prompt(self, content: list[Block], draft: Draft, *, shown: bool) -> None:
        assert self._meta is not None
        self._run, self._step = ids.new("r"), 0
        self._name = self._name or _title(content)
        key, now = ids.new("i"), self._now()
        draft.add(records.Input(time=now, id=key, content=content))
        message = events.UserMessage(visible(content), now, input=key, run=self._run)
        attempt = records.Attempt(
            time=now,
            run=self._run,
            step=1,
            number=1,
            provider=self._meta.provider,
            model=self._meta.model,
            input=key,
        )
        draft.add(attempt, [message] if shown else [])

    def _reply(self, content: list[Block], draft: Draft, *, shown: bool) -> None:
        self._step += 1
        self._ids = {block.id: ids.new("c") for block in content if isinstance(block, ToolCall)}
        content = [
            ToolCall(self._ids[block.id], block.name, block.args) if isinstance(block, ToolCall) else block
            for block in content
        ]
        calls = [block for block in content if isinstance(block, ToolCall)]
        record = records.Reply(
            time=self._now(),
            run=self._run,
            step=self._step,
            content=content,
            stop="tool_use" if calls else "end_turn",
        )
        said = events.AssistantMessage(visible(content), record.time)
        wanted = [events.ToolCallEvent(call.id, call.name, call.args) for call in calls]
        draft.add(record, [said, *wanted] if shown else [])
        self._open.follow(record)

    def _answer(self, block: _Block, draft: Draft, *, shown: bool) -> None:
        """Add the result of a call; one that answers none of the last reply's would make the history illegal."""
        key = self._ids.pop(block.call_id or "", "")
        name = self._open.named(key)
        if name is None:
            return
        content: ToolContent = []
        for part in block.content or []:
            known = _block(part)
            if isinstance(known, Text | Image):
                content.append(known)
        record = records.CallResult(
            time=self._now(), run=self._run, call_id=key, name=name, is_error=block.is_error, content=content
        )
        (seen,) = visible([ToolResult(key, block.is_error, content)])
        assert isinstance(seen, ToolResult)
        event = events.ToolResultEvent(key, block.is_error, seen.content, name=name, time=record.time)
        draft.add(record, [event] if shown else [])
        self._open.follow(record)

    def _count(self, row: _Row, draft: Draft) -> None:
        """What a request took: the difference of the sums, because old files have the sum in both fields."""
        assert self._meta is not None
        total = _tokens(row.cumulative) if row.cumulative else self._took + _tokens(row.usage or _Usage())
        took, self._took = _difference(total, self._took), total
        record = records.UsageRow(
            time=self._now(),
            run=self._run,
            step=self._step,
            provider=self._meta.provider,
            model=self._meta.model,
            tokens=took,
        )
        usage = events.Usage(took.input, took.output, took.cache_read, took.cache_write, took.cost_usd, total)
        draft.add(record, [usage])

    def _compact(self, messages: list[_Message], draft: Draft) -> None:
        """From here on the model sees these messages: a summary and the last ones that were said, as a rule."""
        self._open.close(draft, run=self._run, time=self._now())
        summary = _summary(messages[0]) if messages else None
        if summary is None:
            draft.add(records.Clear(time=self._now()))
        else:
            draft.add(records.Compaction(time=self._now(), summary=summary, kept=0), [events.CompactDone(summary)])
        time = self._time
        for message in messages if summary is None else messages[1:]:
            self._say(message, draft, shown=False)
        self._time = max(time, self._time)

    def _now(self) -> str:
        """The time of the last message; what has none of its own stands beside that."""
        return self._time or rfc3339(0)


def _block(block: _Block) -> Block | None:
    """The block as ours; None for reasoning, and for kinds that are not known."""
    if block.name is not None:
        return ToolCall(block.id or "", block.name, block.arguments or {})
    if block.data is not None:
        return _image(block.mime_type or "image/png", block.data)
    return Text(block.text) if block.text else None


def _image(mime_type: str, data: str) -> Image:
    try:
        size = len(binascii.a2b_base64(data, strict_mode=True))
    except (binascii.Error, ValueError) as error:
        raise BadLineError(f"an image is not base64: {error}") from error
    return Image(mime_type, size, data)


def _summary(message: _Message) -> str | None:
    """The text of a compaction's first message; None when that is no summary."""
    text = "".join(block.text or "" for block in message.content or [])
    if message.role != "user" or not text.startswith(SUMMARY_HEAD):
        return None
    return text.removeprefix(SUMMARY_HEAD).strip()


def _title(content: list[Block]) -> str:
    """Return the name that the first prompt gives to the session."""
    return title_of("".join(block.text for block in content if isinstance(block, Text)))


def _time(text: str) -> str | None:
    """The time as ours have it; None when it is none, or the zero of the language that wrote it."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    return rfc3339(time.timestamp()) if time.year > 1 else None


def _tokens(usage: _Usage) -> Tokens:
    return Tokens(
        usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens, usage.cost_usd
    )


def _difference(total: Tokens, before: Tokens) -> Tokens:
    """What came to the sum; when that is lower than before, it began anew."""
    if total.input < before.input or total.output < before.output:
        return total
    return Tokens(
        total.input - before.input,
        total.output - before.output,
        total.cache_read - before.cache_read,
        total.cache_write - before.cache_write,
        max(0.0, total.cost_usd - before.cost_usd),
    )
