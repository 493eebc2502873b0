"""What follows when a vendor refuses a request because of an image in it."""

from collections.abc import Sequence

from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.retry import Failure, ModelError
from zotd.core.transcript import Transcript
from zotd.ledger.ledger import Shown


def left_out(transcript: Transcript, error: ModelError) -> tuple[Sequence[Shown], ModelError]:
    """Have images that may be why a request was refused left out of the next ones.

    Returns the record that does it, if there are such images, and the error that says so.
    """
    if not error.refuses_content or not transcript.has_new_images:
        return (), error
    said, _, _ = error.sentence.partition(";")
    sentence = f"{said}; the new images are left out from now on; send a prompt to continue without them"
    note = records.Note(time=rfc3339(), level="warn", text=sentence, refused=True)
    return [Shown(note)], ModelError(Failure.REFUSED, sentence)
