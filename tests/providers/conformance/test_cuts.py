"""The connection breaks after each single event of a reply with reasoning, text and a call."""

import pytest
from msgspec.structs import replace

from tests.providers.conformance.conftest import ENDS, called, is_answered, of, results, run
from tests.providers.conformance.table import vendors
from zotd.testing.model_server import DIALECTS
from zotd.testing.script import CallPart, ScriptedReply, TextPart, ThinkingPart, text
from zotd.wire import events

pytestmark = pytest.mark.parametrize("vendor", vendors(), ids=lambda vendor: vendor.name)

REPLY = ScriptedReply(
    [
        ThinkingPart(["Hm."]),
        TextPart(["I ", "run it."]),
        CallPart("bash", {"command": "echo ran >> ran"}, signature="c2lnbmVk"),
    ]
)


def cuts(vendor):
    """After how many events the connection breaks: from none to all."""
    end = ENDS.get(vendor.api, ENDS["anthropic"])
    dialect = next(one for path, one in DIALECTS.items() if end.endswith(path))
    return range(sum(isinstance(piece, bytes) for piece in dialect.pieces(REPLY, "m")) + 1)


def times_run(session):
    file = session.cwd / "ran"
    return file.read_text().count("ran") if file.exists() else 0


async def test_a_reply_that_is_cut_at_any_event_is_asked_for_again_and_its_call_runs_once(begin, vendor):
    script: list[ScriptedReply] = []

    def answer(received):
        return text("done") if is_answered(received) else script.pop(0)

    session = await begin(vendor, answer)
    for number in cuts(vendor):
        script[:] = [replace(REPLY, cut_after=number), REPLY]
        shown = await run(session)
        assert not of(shown, events.Error), number
        assert of(shown, events.AssistantMessage)[-1].content[0].text == "done"
        assert times_run(session) == number + 1
    last = session.server.requests[-1]
    assert len(called(last)) == len(results(last)) == len(cuts(vendor))


async def test_without_patience_a_cut_ends_the_run_with_a_sentence_and_the_next_prompt_works(begin, vendor):
    script: list[ScriptedReply] = []

    def answer(received):
        return script.pop() if script else text("fine")

    session = await begin(vendor, answer, patience_s=0)
    ended, ran = 0, 0
    for number in cuts(vendor):
        script[:] = [replace(REPLY, cut_after=number)]
        shown = await run(session)
        errors = [error.message for error in of(shown, events.Error)]
        if errors:
            (sentence,) = errors
            assert vendor.title in sentence
            assert "\n" not in sentence
            assert sentence.endswith(("send the prompt again", "check the network and --base-url"))
            ended += 1
        else:  # the reply was whole: only the end of the connection was missing
            ran += 1
        assert times_run(session) == ran
        assert not of(await run(session, "and now?"), events.Error), number
    assert ended >= len(cuts(vendor)) - 2
    assert ran >= 1
