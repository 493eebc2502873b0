"""What a timer sends: its prompt, or what the slash command stands for that the prompt is."""

from collections.abc import Callable

from zotd.core.timers import Timer
from zotd.runs.queue import SubmitRequest
from zotd.sessions.session import Session
from zotd.sessions.slash_commands import RESERVED, Asker, Commands
from zotd.wire.api import CommandResult, Started
from zotd.wire.errors import Code, CommandError


def command_in(prompt: str) -> tuple[str, str] | None:
    """Return name and arguments of the slash command that a prompt is; None: it is text, such as `/usr/bin is full`."""
    name, args = (*prompt.split(maxsplit=1), "", "")[:2]
    return (name[1:], args) if name.startswith("/") and "/" not in name[1:] and name != "/" else None


def check_prompt(prompt: str) -> None:
    """Raise CommandError if a prompt is a command that sends none, such as `/compact`."""
    command = command_in(prompt)
    if command is not None and command[0].casefold() in RESERVED:
        raise CommandError(
            Code.BAD_REQUEST,
            f"/{command[0][:40]} is no prompt, and a timer sends prompts: text, a skill, or a command of a file or an extension",
        )


async def send(
    commands: Commands, session: Session, timer: Timer, *, request: SubmitRequest, accepted: Callable[[Started], None]
) -> None:
    """Send what a timer stands for, once for each `request`; `accepted` is called when it is on disk.

    Raises:
        CommandError: the session does not take it, or there is no such command, or it has sent nothing.
    """
    command = None if timer.origin == "wake" else command_in(timer.prompt)  # a model's note is text
    sender = f"timer {timer.id}"
    # What was sent before a crash is only answered: a command of an extension is not asked again.
    if command is None or request.known(session.ledger.transcript) is not None:
        text = timer.prompt[1:] if timer.prompt.startswith("//") else timer.prompt
        await session.prompt(text, (), sender=sender, when_busy="queue", accepted=accepted, request=request)
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
