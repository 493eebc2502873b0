"""Commands about the runs of a session: prompts, abort, compaction, the queue, the model."""

import asyncio
from collections.abc import Sequence

import msgspec

from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import check_reasoning, connection_of, loaded, session_of, switched, wait_for_room
from zotd.api.repeats import digest
from zotd.core.ports import NAME_CHARS
from zotd.core.records import Settings
from zotd.runs.queue import SubmitRequest
from zotd.sessions.agent_settings import check_own
from zotd.sessions.asker import Asker
from zotd.sessions.info import shown
from zotd.sessions.session import Session
from zotd.sessions.shell_commands import Order, run_for_person
from zotd.wire import api, events
from zotd.wire.base import Frozen, encode
from zotd.wire.content import Image, Message, Text, Thinking, ToolResult
from zotd.wire.errors import Code, CommandError
from zotd.wire.framing import SERVER_LIMIT

WHEN_BUSY = ("queue", "steer", "reject")
"""What happens to a prompt that arrives during a run."""

COMMAND_BYTES = 128 * 1024 - 1
"""Longest command of a user. It is the longest argument on Linux, and is stored in the history of the session."""

QUESTION_CHARS = 20_000
"""Longest question beside the conversation."""

UNATTENDED = ("park", "deny")
"""What happens to an approval that no client can decide."""


async def prompt(call: Invocation, params: api.Prompt) -> None:
    """Send a prompt; the response precedes every event that it causes."""
    _check_word("when_busy", params.when_busy, WHEN_BUSY)
    _check_wishes(params)
    if params.sender and len(params.sender) > NAME_CHARS:
        raise CommandError(Code.BAD_REQUEST, f"the sender of a prompt has at most {NAME_CHARS} characters")
    session = await loaded(call, params.session)

    def accepted(started: api.Started) -> None:
        call.respond(api.Started(started=True) if call.door.stdio else started)

    await session.prompt(
        params.message,
        params.images or (),
        sender=params.sender or call.door.sender,
        when_busy=params.when_busy,
        accepted=accepted,
        request=SubmitRequest(
            params.request_id,
            digest(params),
            "deny" if call.door.stdio else params.unattended,
            params.patience_s,
        ),
    )


async def abort(call: Invocation, params: api.Mutation) -> None:
    """Abort the current run; the response precedes the events that end it."""
    session = await loaded(call, params.session)  # like `prompt`, or the abort could overtake an earlier prompt
    call.respond()
    session.abort()


async def retry(call: Invocation, params: api.Mutation) -> None:
    """Retry a failed model request now, instead of at the end of its pause."""
    session = await loaded(call, params.session)
    if not session.work.retry():
        raise CommandError(Code.CONFLICT, "no run of this session is waiting for the model; there is nothing to retry")


async def compact(call: Invocation, params: api.Compact) -> None:
    """Summarise the transcript when its turn in the queue comes."""
    session = await loaded(call, params.session)

    def accepted(started: api.Started) -> None:
        call.respond(api.Started(started=True) if call.door.stdio else started)

    await session.compact(params.instructions, accepted=accepted)


async def side_question(call: Invocation, params: api.SideQuestion) -> api.SideAnswer:
    """Answer from the conversation, without adding to it; pieces of the answer go to this client only."""
    question = params.question.strip()
    if not question:
        raise CommandError(Code.BAD_REQUEST, "the question is empty")
    if len(question) > QUESTION_CHARS:
        raise CommandError(Code.TOO_LARGE, f"a question has at most {QUESTION_CHARS:,} characters")
    session, connection = await loaded(call, params.session), connection_of(call)
    row, label = session.ledger.row, session.ledger.label
    check_own(row.settings, "questions beside the conversation")
    call.manager.planner.check(row.settings, session.environment, row)

    def show(delta: str) -> None:
        if params.key:
            connection.write(encode(events.SideDelta(params.key, delta, session=label)) + b"\n")

    plan = await call.manager.planner.plan(session, None)
    return await session.side.answer(plan, question, show)


async def shell(call: Invocation, params: api.Shell) -> None:
    """Run a shell command of the user; the response is sent once the command is recorded, before its output."""
    if not params.command.strip():
        raise CommandError(Code.BAD_REQUEST, "the command is empty")
    if len(params.command.encode()) > COMMAND_BYTES:
        raise CommandError(Code.TOO_LARGE, f"a command has at most {COMMAND_BYTES:,} bytes; put it into a file")
    session = await loaded(call, params.session)
    request = SubmitRequest(params.request_id, digest(params))
    order = Order(params.command, context=params.context, sender=call.door.sender, request=request)
    await run_for_person(session, order, call.manager.planner, accepted=call.respond)


async def run_command(call: Invocation, params: api.RunCommand) -> None:
    """Run a slash command: built in, of an extension, or a file."""
    _check_wishes(params)
    session = await loaded(call, params.session)
    connection = connection_of(call)

    def insert(text: str) -> None:
        connection.write(encode(events.ExtInsert(text, session=session.id)) + b"\n")

    request = SubmitRequest(unattended=params.unattended, patience_s=params.patience_s)
    can_decide = call.door.role >= api.Role.APPROVE
    asker = Asker(call.door.sender, call.respond, connection.id, insert, request, can_decide)
    await call.manager.commands.run(session, params.name, params.args, asker)


async def clear(call: Invocation, params: api.Mutation) -> None:
    """Clear the transcript."""
    session = await loaded(call, params.session)
    await session.clear(accepted=call.respond)


async def get_state(call: Invocation, params: api.OfSession) -> api.State:
    """Return the figures of the session."""
    session = await session_of(call, params.session)
    row = session.ledger.row
    settings = row.settings
    state = session.state
    return api.State(
        provider=settings.provider,
        model=settings.model,
        cwd=row.cwd,
        message_count=row.messages,
        busy=state == "running",
        usage=row.usage,
        state=None if call.door.stdio else state,
        reasoning=None if call.door.stdio else settings.reasoning,
    )


async def get_messages(call: Invocation, params: api.GetMessages) -> api.Messages:
    """Return the transcript as the model sees it, or as much of its end as fits into a frame."""
    session = await loaded(call, params.session)
    await wait_for_room(call)
    found = session.ledger.transcript.messages
    messages = list(found) if params.full else shown(found)
    kept: list[Message] = []
    room = SERVER_LIMIT - 1024  # for the envelope
    for message in reversed(messages):
        if _least_bytes(message) > room:  # avoids encoding a message of up to 16 MiB that cannot fit
            break
        room -= len(encode(message)) + 1
        if room < 0:
            break
        kept.append(message)
    return api.Messages(kept[::-1], truncated=len(kept) < len(messages))


def _least_bytes(message: Message) -> int:
    """Return a cheap lower bound for the size of the encoded message."""
    blocks: list[object] = list(message.content)
    size = 0
    while blocks:
        match blocks.pop():
            case Text(text=text):
                size += len(text)
            case Thinking(text=text, encrypted=encrypted):
                size += len(text) + len(encrypted)
            case Image(data=data):
                size += len(data)
            case ToolResult(content=content):
                blocks.extend(content)
            case _:  # arguments of calls are small
                pass
    return size


async def set_model(call: Invocation, params: api.SetModel) -> api.ModelName | None:
    """Switch to another model from the next run on."""
    session = await session_of(call, params.session)
    if not params.model:
        raise CommandError(Code.BAD_REQUEST, "the model is empty; get_models lists them")
    old = session.ledger.row.settings
    check_own(old, "setting for a model")
    provider = old.provider if params.provider is None or call.door.stdio else params.provider
    models = call.manager.models
    provider, model = models.choose(provider, params.model, session.environment)
    if not models.known(provider, model) and old.base_url is None:
        raise CommandError(Code.NOT_FOUND, f'unknown model "{model}" (provider {provider}); get_models lists them')
    settings, environment = switched(session, provider, model)
    models.check(settings, environment)
    answer = api.ModelName(model, None if call.door.stdio else provider)
    await _configure(call, session, settings, answer)
    session.use_environment(environment)
    await call.manager.recent_models.remember(settings)
    return None


async def set_reasoning(call: Invocation, params: api.SetReasoning) -> None:
    """Set the reasoning level from the next run on."""
    check_reasoning(params.reasoning)
    session = await session_of(call, params.session)
    settings = msgspec.structs.replace(session.ledger.row.settings, reasoning=params.reasoning)
    await _configure(call, session, settings)


async def get_models(call: Invocation, params: api.GetModels) -> api.Models:
    """List the models of the session's vendor, of a named one, or of all."""
    environment, provider = call.manager.environment(None, None), params.provider
    if params.session or call.door.stdio:
        session = await session_of(call, params.session)
        environment = session.environment
        if provider is None and not params.all:
            check_own(session.ledger.row.settings, "list of models")
        provider = provider or (None if params.all else session.ledger.row.settings.provider)
    await wait_for_room(call)
    # Listing the thousand models of all vendors takes 20 ms, and a client may send many such requests at once.
    listed = call.manager.models.listed
    return api.Models(await asyncio.to_thread(listed, provider, environment, current=params.current))


async def queue_list(call: Invocation, params: api.OfSession) -> api.QueueList:
    """List the queued inputs."""
    session = await loaded(call, params.session)
    return api.QueueList(session.work.queue.items(), session.state == "held")


async def queue_withdraw(call: Invocation, params: api.QueueWithdraw) -> None:
    """Withdraw a queued input."""
    session = await loaded(call, params.session)
    await session.change_queue(lambda queue: queue.withdraw(params.input), accepted=call.respond)


async def queue_move(call: Invocation, params: api.QueueMove) -> None:
    """Move a queued input."""
    session = await loaded(call, params.session)
    await session.change_queue(lambda queue: queue.move(params.input, params.position), accepted=call.respond)


def _check_wishes(params: api.Prompt | api.RunCommand) -> None:
    """Check what the sender wants of the run that begins."""
    if params.unattended is not None:
        _check_word("unattended", params.unattended, UNATTENDED)
    if params.patience_s is not None and not params.patience_s >= 0:
        raise CommandError(Code.BAD_REQUEST, "patience_s must be a number of seconds, at least 0")


def _check_word(field: str, word: str, known: Sequence[str]) -> None:
    if word not in known:
        raise CommandError(Code.BAD_REQUEST, f'{field} cannot be "{word[:80]}"; use {" or ".join(known)}')


async def _configure(call: Invocation, session: Session, settings: Settings, answer: Frozen | None = None) -> None:
    changes = events.SessionChanged(
        session.state, provider=settings.provider, model=settings.model, reasoning=settings.reasoning
    )
    name = session.ledger.row.name
    await session.configure(settings, name, accepted=lambda: call.respond(answer), changes=changes)
