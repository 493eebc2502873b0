"""What waits for its turn in a session: inputs, compactions and runs that go on, first one first.

What is wrong with the content of an input is told before the input is accepted.
"""

import asyncio
import base64
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from msgspec import Struct, field

from zotd import ids
from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.transcript import Transcript
from zotd.ledger.ledger import Shown
from zotd.runs.shell import ShellCommand
from zotd.wire import events
from zotd.wire.api import PromptImage, Started
from zotd.wire.base import encode
from zotd.wire.content import Block, Image, Text
from zotd.wire.errors import Code, CommandError
from zotd.wire.framing import SERVER_LIMIT

MAX_WAITING = 64
"""Inputs that may wait (`docs/durability.md`)."""

SHOWN_CHARS = 2_000
"""Longest text of a waiting input in the queue that clients see; the input itself is not cut."""


STEER = "steer"
"""The mode of an input that joins the run in progress at its next step."""

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What the model vendors take."""

MAX_IMAGE_BYTES = 5 * 1024 * 1024
"""Largest image, decoded: the smallest of the vendors' limits."""

MAX_TEXT_BYTES = SERVER_LIMIT - 64 * 1024
"""Longest text of a prompt, as JSON: the event that shows it is one frame (`docs/protocol.md`), with its other fields."""

JSON_BYTES = 6
"""Most bytes of a character in JSON, as in `\\u0000`; what is short by this measure need not be encoded."""


class SubmitRequest(Struct, frozen=True):
    """What a client says of its request beside the input."""

    id: str | None = None
    """How it names it, so that a repetition is known; None: it does not."""
    digest: str = ""
    """Digest of the request, to tell a repetition from another request with the same id."""
    unattended: str | None = None
    patience_s: float | None = None
    allowed_tools: records.AllowedTools | None = None
    """This and the two before: see `records.Input`."""

    def known(self, transcript: Transcript) -> records.Known | None:
        """What became of it when it came before, also before a restart; None: it is new.

        Raises:
            CommandError: it was another one with the same id.
        """
        first = transcript.requests.get(self.id) if self.id is not None else None
        if first is not None and self.digest != first.digest:
            raise CommandError(Code.DUPLICATE_KEY, "this request_id was used for another request; make a new one")
        return first


class Job(Struct, eq=False):
    """Something that waits: an input, or (without one) a compaction, a run that goes on, a command of a person, an errand."""

    accepted: Callable[[Started], None]
    """Tells the sender; called once, before any event that the job causes."""
    input: records.Input | None = None
    stored: bool = False
    """The input is in the journal already, and its sender has been told."""
    instructions: str = ""
    resumes: bool = False
    """It goes on where the last run was cut."""
    shell: ShellCommand | None = None
    """The command of a person."""
    errand: Callable[[], Awaitable[None]] | None = None
    """Work during which nothing else of the session runs. It answers its sender itself."""
    run: str = field(default_factory=partial(ids.new, "r"))
    answered: asyncio.Future[None] | None = None
    """Done when the job has started; fails when it could not."""

    @property
    def told(self) -> bool:
        """The sender knows that it was taken, and waits for its events."""
        return self.stored or (self.answered is not None and self.answered.done())

    def expect_answer(self) -> asyncio.Future[None]:
        """Return a future that is done when the job has started, and fails when it could not."""
        self.answered = asyncio.get_running_loop().create_future()
        return self.answered

    def answer(self, started: Started) -> None:
        """Tell the sender that it starts."""
        self.accepted(started)
        if self.answered is not None and not self.answered.done():
            self.answered.set_result(None)

    def fail(self, error: BaseException) -> None:
        """Tell the sender that it could not start; harmless when it has."""
        if self.answered is not None and not self.answered.done():
            self.answered.set_exception(error if isinstance(error, Exception) else asyncio.CancelledError())


class Queue:
    """The jobs of one session. Changing it is synchronous; its record goes to the journal afterwards."""

    def __init__(self) -> None:
        self._jobs: deque[Job] = deque()
        self._taken: Job | None = None
        """Taken and not started: it has its place in the queue until its run is in the journal."""

    def __len__(self) -> int:
        return len(self._jobs)

    def clear(self) -> None:
        """Forget all jobs, before they are loaded from the journal again."""
        self._jobs.clear()
        self._taken = None

    def add(self, job: Job, *, held: bool = False) -> None:
        """Put it last. A full queue that is `held` takes one more: that one lets them go on."""
        if len(self._jobs) >= MAX_WAITING + held:
            raise CommandError(Code.QUEUE_FULL, f"{MAX_WAITING} inputs are already queued; withdraw one or wait")
        self._jobs.append(job)

    def put_first(self, job: Job) -> None:
        """Put it before everything that waits."""
        self._jobs.appendleft(job)

    def restore(self, job: Job) -> None:
        """Put last what was accepted before a restart; there may be one more than fits: the one that was starting."""
        self._jobs.append(job)

    def put_back(self, job: Job) -> None:
        """Put first what was taken and could not start."""
        self._taken = None
        job.run = ids.new("r")  # everybody has heard that the other one is over
        self._jobs.appendleft(job)

    def take(self, *, held: bool) -> Job | None:
        """The first job, which waits no longer; while inputs are `held` the first that is none. None: there is none."""
        for job in self._jobs:
            if not held or job.input is None:
                self._jobs.remove(job)
                self._taken = job
                return job
        return None

    def withdraw(self, input_id: str) -> None:
        """Remove an input that waits."""
        self._jobs.remove(self._find(input_id))

    def move(self, input_id: str, position: int) -> None:
        """Put an input that waits at `position` among the inputs, from 1; beyond the end is last."""
        job = self._find(input_id)
        self._jobs.remove(job)
        others = [other for other in self._jobs if other.input is not None]
        place = max(0, position - 1)
        self._jobs.insert(self._jobs.index(others[place]) if place < len(others) else len(self._jobs), job)

    def started(self, first: records.Input) -> list[events.Event]:
        """This input starts, in the record that is written now; the event that shows the rest, if it had waited."""
        if self._taken is None or self._taken.input is not first or not self._taken.stored:
            return []
        self._taken = None
        return [events.QueueChanged(self.items(), held=False)]

    @property
    def has_steering(self) -> bool:
        """Inputs wait that join the run at its next step."""
        return any(_steers(job) for job in self._jobs)

    def steering(self) -> list[records.Input]:
        """Those inputs, which wait no longer: they belong into the record that is written now."""
        found: list[records.Input] = []
        for job in list(self._jobs):
            if job.input is not None and _steers(job):
                self._jobs.remove(job)
                found.append(job.input)
        return found

    def items(self) -> list[events.QueueItem]:
        """The stored inputs that have not started, as clients see them."""
        jobs = [*([self._taken] if self._taken else []), *self._jobs]
        return [_item(job.input) for job in jobs if job.input is not None and job.stored]

    def record(self, *, held: bool) -> Shown:
        """The order as a record, and the event that shows it; what they leave out is withdrawn."""
        items = self.items()
        order = records.QueueOrder(time=rfc3339(), order=[item.id for item in items], held=held)
        return Shown(order, [events.QueueChanged(items, held)])

    def _find(self, input_id: str) -> Job:
        for job in self._jobs:
            if job.input is not None and job.input.id == input_id:
                return job
        raise CommandError(Code.NOT_FOUND, f"no input {input_id} is queued; it has started or was withdrawn")


def _steers(job: Job) -> bool:
    return job.stored and job.input is not None and job.input.mode == STEER


def _item(record: records.Input) -> events.QueueItem:
    text = "".join(block.text for block in record.content if isinstance(block, Text))
    return events.QueueItem(record.id, text[:SHOWN_CHARS], record.sender, record.mode)


def content_of(message: str, images: Sequence[PromptImage]) -> list[Block]:
    """The blocks of a user message.

    Raises:
        CommandError: no text and no image, too much text, or an image that no vendor takes.
    """
    blocks: list[Block] = []
    for number, image in enumerate(images, 1):
        blocks.append(_image(number, image))
    if message.strip():
        if len(message) * JSON_BYTES > MAX_TEXT_BYTES:
            _check_length(message)
        blocks.append(Text(message))
    if not blocks:
        raise CommandError(Code.BAD_REQUEST, "the prompt is empty; send text, an image, or both")
    return blocks


def _check_length(message: str) -> None:
    size = len(encode(message))
    if size > MAX_TEXT_BYTES:
        sentence = (
            f"the prompt has {size:,} bytes of text, of {MAX_TEXT_BYTES:,} at most; put it into a file to be read"
        )
        raise CommandError(Code.TOO_LARGE, sentence)


def _image(number: int, image: PromptImage) -> Image:
    if image.mime_type not in IMAGE_TYPES:
        kinds = ", ".join(kind.removeprefix("image/") for kind in IMAGE_TYPES)
        raise CommandError(Code.BAD_REQUEST, f'image {number} is "{image.mime_type}"; models take {kinds}')
    try:
        size = len(base64.b64decode(image.data, validate=True))
    except ValueError as error:  # binascii.Error is one; letters beyond ASCII raise the plain one
        raise CommandError(Code.BAD_REQUEST, f"the data of image {number} is not base64") from error
    if not 0 < size <= MAX_IMAGE_BYTES:
        limit = MAX_IMAGE_BYTES // (1024 * 1024)
        raise CommandError(Code.TOO_LARGE, f"image {number} has {size} bytes; models take 1 byte to {limit} MiB")
    return Image(image.mime_type, size, image.data)
