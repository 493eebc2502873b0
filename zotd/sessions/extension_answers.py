"""What an extension wants done when its slash command has run."""

from msgspec.structs import replace

from zotd.contributions.ui_state import DISPLAY_CHARS
from zotd.core import records
from zotd.core.depth import TOO_DEEP, is_too_deep
from zotd.core.registry import TOOL_NAME
from zotd.sessions.asker import Asker
from zotd.sessions.session import Session
from zotd.wire import ext
from zotd.wire.api import CommandResult, Started
from zotd.wire.errors import Code, CommandError


async def carry_out(session: Session, extension: str, answer: ext.CommandResponse, asker: Asker) -> None:
    """Do what the extension has answered to its command, and answer the one who sent it. Raises CommandError."""
    extensions = session.extensions
    if extensions is None:
        raise CommandError(Code.CONFLICT, f"the session was closed before {extension} answered")
    match answer.action:
        case "prompt" | "tool_prompt":
            await _prompt(session, extension, answer, asker)
        case "display":
            text = answer.display[:DISPLAY_CHARS]
            asker.respond(CommandResult("display", extension, text))
            extensions.ui_state.display(extension, text)
        case "insert":
            text = answer.insert[:DISPLAY_CHARS]
            asker.respond(CommandResult("insert", extension, text))
            if asker.insert is not None:
                asker.insert(text)
        case "open_panel" if answer.open_panel is not None:
            asker.respond(CommandResult("open_panel", extension))
            refused = extensions.ui_state.open(extension, answer.open_panel)
            if refused is not None:
                extensions.ui_state.note(extension, "error", refused)
        case "open_panel":
            raise CommandError(Code.BAD_REQUEST, f"{extension} asked for a panel without naming one")
        case _:
            asker.respond(CommandResult("noop", extension))


async def _prompt(session: Session, extension: str, answer: ext.CommandResponse, asker: Asker) -> None:
    if answer.action == "tool_prompt":
        _check_opening(extension, answer)

    def accepted(started: Started) -> None:
        result = CommandResult("prompt", extension, input=started.input, run=started.run)
        asker.respond(replace(result, position=started.position, started=started.started))

    opening = None
    if answer.action == "tool_prompt":
        opening = records.Opening(answer.tool_name, answer.tool_args or {})
    await session.load()
    await session.prompt(
        answer.prompt or (f"/{answer.tool_name}" if opening else ""),
        [],
        sender=asker.sender,
        when_busy="queue",
        accepted=accepted,
        request=asker.request,
        opening=opening,
    )


def _check_opening(extension: str, answer: ext.CommandResponse) -> None:
    """Refuse a call that must not get into the transcript: each later request of the session would carry it."""
    if not answer.tool_name:
        raise CommandError(Code.BAD_REQUEST, f"{extension} asked for a tool without naming one")
    if not TOOL_NAME.fullmatch(answer.tool_name):
        raise CommandError(
            Code.BAD_REQUEST, f'{extension} asked for the tool "{answer.tool_name[:80]}", which cannot be run'
        )
    if is_too_deep(answer.tool_args):
        raise CommandError(Code.BAD_REQUEST, f"{extension} asked for {answer.tool_name} with {TOO_DEEP}")
