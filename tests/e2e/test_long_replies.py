"""The longest reply there may be: a client that reads as fast as Python can gets all of it."""

from zotd.core.reply import REPLY_CHARS
from zotd.testing.script import ScriptedReply, TextPart

PIECE = "words of a very long reply, " * 64


async def test_a_client_that_reads_all_the_time_is_not_evicted_during_the_longest_reply(process, model, look):
    pieces = [PIECE] * (REPLY_CHARS // len(PIECE))
    talk = await process.create("openai", await model(ScriptedReply([TextPart(pieces)])))
    events = await talk.run("tell me everything")
    shown = "".join(event["delta"] for event in look.only(events, "text_delta"))
    assert shown == PIECE * len(pieces)
    assert look.only(events, "evicted") == []
    metrics = await talk.ask("daemon.metrics")
    assert metrics["evictions"] == 0
