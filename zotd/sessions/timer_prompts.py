"""Sends the prompt of a timer, or runs the slash command in its place."""

from collections.abc import Callable

from zotd.core.timers import Timer
from zotd.runs.queue import SubmitRequest
from zotd.sessions.asker import Asker
from zotd.sessions.session import Session
from zotd.sessions.slash_commands import RESERVED, Commands
from zotd.wire.api import CommandResult, Started
from zotd.wire.errors import Code, CommandError
from zotd.wire.slash_lines import parsed, unescaped


def check_prompt(prompt: str) -> None:
    """Raise CommandError if a prompt is a slash command that sends none, such as `/compact`."""
    command = parsed(prompt)
    if command is not None and command[0].casefold() in RESERVED:
        raise CommandError(
            Code.BAD_REQUEST,
            f"/{command[0][:40]} sends no prompt, so a timer cannot run it; it can run a skill, and a command of a file or an extension",
        )


async def send(
    commands: Commands, session: Session, timer: Timer, *, request: SubmitRequest, accepted: Callable[[Started], None]
) -> None:
    """Send the prompt of a timer, once for each `request`; `accepted` is called when it is on disk.

    Raises:
        CommandError: the session does not take it, or there is no such command, or it has sent nothing.
    """
    command = None if timer.origin == "wake" else parsed(timer.prompt)  # a model's note is text
    sender = f"timer {timer.id}"
    # What was sent before a crash is only answered: a command of an extension is not asked again.
    if command is None or request.known(session.ledger.transcript) is not None:
        await session.prompt(
            unescaped(timer.prompt), (), sender=sender, when_busy="queue", accepted=accepted, request=request
        )
        return
    check_prompt(timer.prompt)
    inputs = list[str]()

    def respond(result: CommandResult) -> None:
        if result.input is not None:
            inputs.append(result.input)
            accepted(
                Started(started=bool(result.started), input=result.input, run=result.run, position=result.position)
            )

    try:
        await commands.run(session, command[0], command[1], Asker(sender, respond, request=request))
    except CommandError as error:
        if error.code is Code.NOT_FOUND:  # the command; the session is there
            raise CommandError(Code.BAD_REQUEST, error.sentence) from error
        raise
    if not inputs:
        raise CommandError(Code.BAD_REQUEST, f"/{command[0]} has sent no prompt")
