"""What people see on Telegram: formatted text, cut into messages, and what was written before a stop."""

import asyncio
import html
import re

import pytest

from zotd.channels.telegram_text import PIECE_UNITS, pieces
from zotd.testing.script import Gate, ScriptedReply, TextPart, text
from zotd.testing.telegram_server import FailedMethod
from zotd.wire import events

REPLY = """\
# Result <1>

It **works & _runs_**, says `a < b`; see [the log](https://example.org/?a=1&b=2).

1. first
2. second
   - deeper

```py
if a < b: ...
```

> said

| a | b |
|---|---|
| 1 | two |
"""

SHOWN = """\
<b>Result &lt;1&gt;</b>

It <b>works &amp; <i>runs</i></b>, says <code>a &lt; b</code>; see <a href="https://example.org/?a=1&amp;b=2">the log</a>.

1. first
2. second
   • deeper

<pre><code class="language-py">if a &lt; b: ...</code></pre>

<blockquote>said</blockquote>

<pre>a  b
1  two</pre>"""

PLAIN = html.unescape(re.sub(r"<[^>]*>", "", SHOWN))


async def test_an_answer_is_formatted(model, open_chat, telegram):
    chat = await open_chat(await model(text(REPLY)))
    assert await chat.say("well?") == SHOWN
    assert telegram.sent[-1]["parse_mode"] == "HTML"


async def test_an_answer_whose_formatting_is_refused_arrives_as_plain_text(model, open_chat, telegram):
    chat = await open_chat(await model(text(REPLY)))
    telegram.refusals.append(FailedMethod("sendMessage", 400, "Bad Request: can't parse entities"))
    assert await chat.say("well?") == PLAIN
    assert "parse_mode" not in telegram.sent[-1]


async def test_formatting_continues_in_the_next_message(model, open_chat, telegram):
    chat = await open_chat(await model(text("~~~\n" + "x <y>\n" * 1000 + "~~~")))
    await chat.say("a lot")
    sent = [str(one["text"]) for one in (await telegram.said(4))[2:]]
    assert [(one[:5], one[-6:]) for one in sent] == [("<pre>", "</pre>")] * 2
    assert "\n".join(one[5:-6] for one in sent) == html.escape("x <y>\n" * 1000).rstrip("\n")


@pytest.mark.parametrize(
    "markdown",
    ["**" + "🦭 & " * 5000 + "end**", "- " * 15 + "deep", "<b>&amp;</i> ](x) **", "`" * 9, "> > - # `a`\n\n\n"],
)
def test_any_markdown_becomes_messages_that_telegram_takes(markdown):
    for piece in pieces(markdown):
        assert len(piece.text.encode("utf-16-le")) // 2 <= PIECE_UNITS
        assert html.unescape(re.sub(r"</?(?:b|i|s|a|pre|code|blockquote)\b[^>]*>", "", piece.html)) == piece.text


class Watching:
    """Sees the text of a session while it is written."""

    def __init__(self):
        self.text = ""
        self.changed = asyncio.Event()

    def early(self, shown, data, seq):
        del shown, data, seq
        return False

    def committed(self, shown, data, last_seq):
        pass

    def live(self, shown, data):
        del data
        self.text += "".join(event.delta for event in shown if isinstance(event, events.TextDelta))
        self.changed.set()

    async def until(self, wanted):
        async with asyncio.timeout(5):
            while wanted not in self.text:
                self.changed.clear()
                await self.changed.wait()


async def test_text_written_before_a_stop_is_kept(model, open_chat, telegram):
    gate = asyncio.Event()
    server = await model(text("Hello."), ScriptedReply([TextPart(["Once upon a time"]), Gate(gate)]))
    chat = await open_chat(server)
    await chat.say("hello")
    (peer,) = chat.house.channels.listing().paired
    session, watching = await chat.house.manager.get(peer.session), Watching()
    session.ledger.subscribe(watching)
    await telegram.write("tell me a story")
    await watching.until("Once upon a time")
    before = len(telegram.sent)
    await telegram.write("/stop")
    said = {one["text"] for one in (await telegram.said(before + 2))[before:]}
    assert said == {"Stopping.", "Once upon a time\n\nStopped here."}
    session.ledger.unsubscribe(watching)
    gate.set()
