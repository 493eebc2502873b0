"""What a session that was cut off needs before anybody goes on with it (`docs/durability.md`, After a crash)."""

import msgspec

from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.closings import unrepeatable
from zotd.core.early_summary import PURPOSE
from zotd.core.transcript import Transcript
from zotd.ledger.ledger import Shown
from zotd.runs.request_billing import COMPACTION, REPLY
from zotd.runs.shell import interrupted
from zotd.runs.tool_calls import cut_results
from zotd.wire import events

CUT = "this run was cut off: the daemon stopped, or could not store it"

WAITING = "inputs waited when the daemon stopped; they are held"

GO_ON = "/continue goes on"

CALL = "{name} was running when this run was cut off: it may or may not have happened, and is not run again"

CUT_REPLY = "the reply was cut here: {text}"

ASKED_AGAIN = "the reply was cut off here; the model is asked again"

INTERRUPTED = "interrupted"
"""`failure` of the usage row of a request that a crash has cut."""

RUN, REPLY_CUT, TOOL, QUEUE = "run", "reply", "tool", "queue"
"""What can be cut: `interrupted.what`."""


def repairs(transcript: Transcript, partial: str) -> list[Shown]:
    """Records that close what was cut, with the events that say so; none when nothing was.

    Calls that must not run again get their result; the others stay open for `/continue`. `partial`: as much as is
    known of the reply that was coming.
    """
    now = rfc3339()
    if not transcript.run_open:  # a person's command runs only then
        shell = [interrupted(transcript.shell, now)] if transcript.shell is not None else []
        return [*shell, *_queue(transcript, now)]
    return [*_calls(transcript, now), *_request(transcript, partial, now), _run(transcript, now)]


def _queue(transcript: Transcript, now: str) -> list[Shown]:
    return [_cut(QUEUE, f"{WAITING}; {GO_ON}", now)] if transcript.waiting and not transcript.held else []


def _calls(transcript: Transcript, now: str) -> list[Shown]:
    found: list[Shown] = []
    for result in unrepeatable(transcript, now):
        text = CALL.format(name=result.name)
        note = records.Interrupted(time=now, what=TOOL, text=text, call_id=result.call_id)
        found += cut_results([result])
        found.append(Shown(note, [events.Interrupted(TOOL, text, result.call_id)]))
    return found


def reply_begun(transcript: Transcript) -> list[Shown]:
    """The beginning of the reply to the request that was under way, if no record has it. Write it before all else.

    Clients may have got this event before its commit (`zotd.ledger.ledger.Ledger.begin_reply`), and must get the same
    one again if not. Whether the model had begun to answer is not known.
    """
    sent = transcript.in_flight
    if sent is None or not transcript.awaits_reply:
        return []
    record = msgspec.structs.replace(sent, time=rfc3339(), input=None, answered=True, steered=[])
    return [Shown(record, [events.AssistantStart()])]


def unbilled(transcript: Transcript, now: str) -> list[Shown]:
    """The usage row of the model request that was under way, if one was: what it cost is not known."""
    sent = transcript.in_flight
    if sent is None:
        return []
    return [Shown(_cut_row(sent, REPLY if sent.number else COMPACTION, now))]


def beside_unbilled(transcript: Transcript, now: str) -> list[Shown]:
    """The usage rows of requests beside the run that were under way.

    A later run may request an early summary again; what a tool call or a person has asked is over.
    """
    under_way = [(sent, purpose) for purpose, sent in transcript.beside.items()]
    if transcript.early.sent is not None:
        under_way.append((transcript.early.sent, PURPOSE))
    return [Shown(_cut_row(sent, purpose, now)) for sent, purpose in under_way]


def _cut_row(sent: records.Attempt, purpose: str, now: str) -> records.UsageRow:
    return records.UsageRow(
        time=now,
        run=sent.run,
        step=sent.step,
        provider=sent.provider,
        model=sent.model,
        tokens=None,
        purpose=purpose,
        estimate=sent.estimate,
        failure=INTERRUPTED,
    )


def _request(transcript: Transcript, partial: str, now: str) -> list[Shown]:
    """The same, and what had come of the reply, which is kept for people."""
    found = unbilled(transcript, now)
    if found and partial:
        text = CUT_REPLY.format(text=partial)
        note = records.Interrupted(time=now, what=REPLY_CUT, text=text)
        found.append(Shown(note, [events.Interrupted(REPLY_CUT, text, partial=partial)]))
    return found


def asked_again() -> Shown:
    """A reply broke off, and the model is asked for it again."""
    return _cut(REPLY_CUT, ASKED_AGAIN, rfc3339())


def _run(transcript: Transcript, now: str) -> Shown:
    # A summary is not resumed, but requested again.
    text = f"{CUT}; {GO_ON}" if transcript.can_resume or transcript.waiting else CUT
    return _cut(RUN, text, now, events.Done(run=transcript.run))


def _cut(what: str, text: str, now: str, *after: events.Event) -> Shown:
    return Shown(records.Interrupted(time=now, what=what, text=text), [events.Interrupted(what, text), *after])
