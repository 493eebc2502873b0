"""What a subagent has to say at its end, as the result of the call that waits for it."""

import os
import threading
from pathlib import Path

from zotd.core import records
from zotd.core.ports import ToolContext, ToolOutcome
from zotd.paths import make_private_dir
from zotd.sessions.session import Session
from zotd.tools.shared import TEXT_BYTES, in_thread, text_outcome
from zotd.wire.content import Text

CUT = "\n\n[{left:,} bytes are left out here; the whole answer is in {path}]\n\n"

NO_ANSWER = "it ended without an answer"

ABORTED = "it was aborted by the user"


async def answer_of(child: Session) -> ToolOutcome:
    """Return the last answer of a subagent whose run has ended; an error outcome if there is none."""
    transcript, row = child.ledger.transcript, child.ledger.row
    last = transcript.messages[-1] if transcript.messages else None
    is_answer = last is not None and last.role == "assistant"
    said = "\n\n".join(block.text for block in last.content if isinstance(block, Text)) if last and is_answer else ""
    if child.ledger.failure is not None:
        return text_outcome(f"the subagent {row.id} was cut: {child.ledger.failure}", is_error=True)
    if not row.failed and not transcript.can_resume and said.strip():
        return text_outcome(said)
    reason = await _last_note(child)
    text = f"the subagent {row.id} has not done its task: {reason}"
    return text_outcome(f"{text}\n\nIts last words were:\n\n{said}" if said.strip() else text, is_error=True)


async def _last_note(child: Session) -> str:
    """Why its run has ended, in the words that people were told."""
    row = child.ledger.row
    if not row.failed:
        return ABORTED if child.ledger.transcript.can_resume else NO_ANSWER
    stored = await child.ledger.journal.records(row.id, row.base)
    notes = (one.text for one in reversed(stored) if isinstance(one, records.Note) and one.level == "error")
    return next(notes, NO_ANSWER)


async def bounded(outcome: ToolOutcome, context: ToolContext) -> ToolOutcome:
    """Return the outcome as it is, or its beginning and its end, and all of it in a file."""
    (block,) = outcome.content
    assert isinstance(block, Text), "a subagent answers with a text"
    data = block.text.encode()
    if len(data) <= TEXT_BYTES:
        return outcome
    path = Path(context.out_dir, f"{context.call_id}.txt")
    await in_thread(lambda _: _keep(path, data, _))
    half = TEXT_BYTES // 2
    head, tail = data[:half].decode(errors="ignore"), data[-half:].decode(errors="ignore")
    left = len(data) - len(head.encode()) - len(tail.encode())
    return text_outcome(head + CUT.format(left=left, path=path) + tail, is_error=outcome.is_error)


def _keep(path: Path, data: bytes, _: threading.Event) -> None:
    make_private_dir(str(path.parent))
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(data)
