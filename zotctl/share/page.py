"""Makes one static HTML page of a session: no script, nothing that is loaded, every text escaped."""

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from zotctl.share.redaction import Redaction
from zotd.sanitize import harmless
from zotd.wire import events
from zotd.wire.content import Block, Image, Text

STYLE = """
:root{color-scheme:light dark;--line:#8886;--soft:#8881;--add:#2a52;--cut:#c332}
body{margin:0 auto;max-width:52rem;padding:1rem;font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
header,footer{border-block:1px solid var(--line);padding:.6rem 0;color:GrayText;font-size:.86rem}
h1{font-size:1.25rem;margin:.4rem 0;color:CanvasText}
article{margin:1rem 0}
article p{white-space:pre-wrap;margin:.3rem 0}
.user{background:var(--soft);border-radius:10px;padding:.4rem .9rem}
.from{color:GrayText;font-size:.8rem;text-decoration:none}
.note{border-left:3px solid var(--line);padding-left:.8rem;color:GrayText}
details{border:1px solid var(--line);border-radius:10px;padding:.4rem .8rem;margin:.5rem 0}
summary{cursor:pointer;font:.86rem/1.6 ui-monospace,monospace}
pre{white-space:pre-wrap;background:var(--soft);border-radius:8px;padding:.6rem .8rem;margin:.5rem 0;max-height:60vh;overflow:auto;font:.8rem/1.5 ui-monospace,monospace}
.failed>summary::after{content:" \\2717"}
.add{display:block;background:var(--add)}
.cut{display:block;background:var(--cut)}
"""

POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-"
    + base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    + "'"
)
"""Nothing but the style of the page itself: a browser refuses scripts and every request, even if a text were not escaped."""

SUMMARY_CHARS = 160
"""Longest line that stands for a folded call."""

_SUBJECTS = ("command", "path", "pattern", "name", "query", "url")
"""Arguments that say best what a call is about; the first one counts."""

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


def escaped(text: str) -> str:
    """Return the text for the content of an element or a quoted attribute; what is invisible in it is made visible."""
    return harmless(text).translate(_ESCAPES)


@dataclass(slots=True)
class _Call:
    """A tool call, with its result once there is one."""

    name: str
    args: Mapping[str, object]
    result: Sequence[Text | Image] | None = None
    is_error: bool = False


@dataclass(slots=True)
class _Entry:
    """What the page shows of one event."""

    seq: int
    event: events.AnyEvent
    calls: list[_Call] = field(default_factory=list)


class SharedPage:
    """The page of one session."""

    def __init__(self, redaction: Redaction, *, start: int = 0, end: int | None = None) -> None:
        """Show what has a `seq` from `start` to `end`; None: to the end."""
        self.messages = 0
        """How many it has, once it is made."""
        self._redaction = redaction
        self._start = start
        self._end = end
        self._calls: dict[str, _Call] = {}
        """By id, as far as they are read."""

    def html(self, lines: Iterable[str]) -> str:
        """Return the page; `lines` are those of an export as JSON lines."""
        head: dict[str, object] = {}
        usage: events.Usage | None = None
        entries: list[_Entry] = []
        for line in filter(None, lines):
            kind = msgspec.json.decode(line).get("type")
            if kind == "session":
                head = msgspec.json.decode(line)
            elif kind not in {"record", "end"}:
                event = _event(line)
                usage = event if isinstance(event, events.Usage) else usage
                if event is not None:
                    self._add(entries, event)
        body = "".join(self._entries(entries))
        # Last, because it says what was masked.
        return self._framed(head, usage, body)

    def _add(self, entries: list[_Entry], event: events.AnyEvent) -> None:
        match event:
            case events.Rewound(to=to):  # what followed is no part of the conversation any more
                entries[:] = [entry for entry in entries if entry.seq <= to]
            case events.ToolCallEvent(id=key, name=name, args=args):
                call = self._calls[key] = _Call(name, args)
                if not entries or not isinstance(entries[-1].event, events.AssistantMessage):
                    entries.append(_Entry(event.seq or 0, events.AssistantMessage([], "")))
                entries[-1].calls.append(call)
            case events.ToolResultEvent(id=key, content=content, is_error=is_error) if key in self._calls:
                self._calls[key].result, self._calls[key].is_error = content, is_error
            case (
                events.UserMessage()
                | events.AssistantMessage()
                | events.CompactDone()
                | events.Error()
                | events.Interrupted()
            ):
                entries.append(_Entry(event.seq or 0, event))
            case _:
                pass

    def _framed(self, head: Mapping[str, object], usage: events.Usage | None, body: str) -> str:
        name, created = self._clean(str(head.get("name") or "A session")), str(head.get("created", ""))
        where, cost = self._clean(str(head.get("cwd", ""))), "" if usage is None else f"<p>{_cost(usage)}</p>"
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{escaped(POLICY)}">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="referrer" content="no-referrer"><meta name="robots" content="noindex">'
            f"<title>{name}</title><style>{STYLE}</style></head>\n<body><header><h1>{name}</h1>"
            f"<p>zot · {escaped(created[:10])} · {where}</p></header>\n<main>\n{body}</main>\n"
            f"<footer>{cost}<p>Before this was shared, zot {escaped(self._redaction.told())}.</p></footer></body></html>\n"
        )

    def _entries(self, entries: Iterable[_Entry]) -> Iterator[str]:
        for entry in entries:
            if entry.seq < self._start or (self._end is not None and entry.seq > self._end):
                continue
            match entry.event:
                case events.UserMessage(content=content, time=time, shell=shell):
                    self.messages += 1
                    who = "You" if shell is None else "You, at the shell"
                    yield self._article("user", entry.seq, f"{who}, {time[:16].replace('T', ' ')}", content)
                case events.AssistantMessage(content=content):
                    self.messages += 1
                    calls = "".join(map(self._call, entry.calls))
                    yield self._article("reply", entry.seq, "Agent", content, more=calls)
                case events.CompactDone(summary=text):
                    yield self._note(f"The conversation was summarised:\n\n{text}")
                case events.Error(message=text) | events.Interrupted(text=text):
                    yield self._note(text)
                case _:
                    pass

    def _article(self, kind: str, seq: int, who: str, content: Sequence[Block], *, more: str = "") -> str:
        texts = "".join(f'<p dir="auto">{self._clean(text)}</p>' for text in _texts(content))
        head = f'<a class="from" href="#m{seq}">{escaped(who)}</a>'
        return f'<article class="{kind}" id="m{seq}">{head}{texts}{more}</article>\n'

    def _note(self, text: str) -> str:
        return f'<article class="note"><p>{self._clean(text)}</p></article>\n'

    def _call(self, call: _Call) -> str:
        subject = next((call.args[key] for key in _SUBJECTS if isinstance(call.args.get(key), str)), "")
        line = " ".join(f"{call.name} {subject}".split())
        line = line if len(line) <= SUMMARY_CHARS else f"{line[:SUMMARY_CHARS]}…"
        result = "it has no result" if call.result is None else "\n".join(_texts(call.result))
        kind = ' class="failed"' if call.is_error else ""
        return f"<details{kind}><summary>{self._clean(line)}</summary>{self._args(call)}<pre>{self._clean(result)}</pre></details>"

    def _args(self, call: _Call) -> str:
        edits = call.args.get("edits")
        if call.name == "edit" and isinstance(edits, list):
            changes = [one for one in edits if isinstance(one, dict)]
            rows = (self._rows(str(one.get("oldText", "")), str(one.get("newText", ""))) for one in changes)
            return f"<pre>{''.join(rows)}</pre>"
        if call.name == "write" and isinstance(call.args.get("content"), str):
            return f"<pre>{self._rows('', str(call.args['content']))}</pre>"
        if call.name == "bash" and isinstance(call.args.get("command"), str):
            return f"<pre>{self._clean(str(call.args['command']))}</pre>"
        return f"<pre>{self._clean(json.dumps(call.args, ensure_ascii=False, indent=1))}</pre>"

    def _rows(self, old: str, new: str) -> str:
        # Masked as a whole: a secret may have more than one line.
        cut = [f'<span class="cut">-{escaped(line)}</span>' for line in self._redaction.redacted(old).splitlines()]
        add = [f'<span class="add">+{escaped(line)}</span>' for line in self._redaction.redacted(new).splitlines()]
        return "".join([*cut, *add])

    def _clean(self, text: str) -> str:
        return escaped(self._redaction.redacted(text))


def _event(line: str) -> events.AnyEvent | None:
    try:
        event: events.AnyEvent = events.DECODER.decode(line)
    except msgspec.ValidationError:  # of a newer version
        return None
    return event


def _texts(content: Sequence[Block]) -> Iterator[str]:
    for block in content:
        match block:
            case Text(text=text) if text:
                yield text
            case Image(mime_type=kind, bytes=size):
                yield f"[an image, {kind}, {size:,} bytes]"
            case _:
                pass  # calls have events of their own; thinking is not shown


def _cost(usage: events.Usage) -> str:
    total = usage.cumulative
    return f"{total.total:,} tokens, ${total.cost_usd:.2f}"
