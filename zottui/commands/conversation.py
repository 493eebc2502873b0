"""Commands about what was said: going on, going back, starting anew."""

from dataclasses import dataclass

from zotd.wire import api
from zotd.wire.content import Message
from zottui.commands.command import Command, UsageError, number, of
from zottui.desk import Desk
from zottui.dialogs import choose
from zottui.dialogs.listing import Entry
from zottui.transcript import text_of

PAGE = 200
"""Messages asked for at a time."""

SHOWN_CHARS = 60
"""Of a prompt that can be gone back to: what fits beside its number."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt of the conversation."""

    text: str
    seq: int
    before: int | None
    """The `seq` of the message before it; None: it is the first one."""


async def compact(desk: Desk, focus: str) -> None:
    """Summarise the conversation for the model; people still see all of it."""
    await desk.ask(api.Compact(session=of(desk), instructions=focus), api.Started, timeout_s=None)


async def clear(desk: Desk, _: str) -> None:
    """Let the model forget; what is on the screen stays."""
    await desk.ask(api.Mutation(session=of(desk)), api.Nothing, command="clear")
    desk.say("the model has forgotten everything; the screen has not")


async def go_on(desk: Desk, _: str) -> None:
    """Go on where the session stopped."""
    params = api.RunCommand(session=of(desk), name="continue")
    await desk.ask(params, api.CommandResult)


async def rewind(desk: Desk, args: str) -> None:
    """Go back to before a prompt, which comes into the editor; files stay as they are."""
    turns = await prompts(desk)
    which = number(args, "the prompt to go back to")
    if which is not None:
        await _rewind(desk, turns, which)
        return
    entries = [Entry(str(at), f"{at:3}  {_short(turn.text)}") for at, turn in enumerate(turns, 1)]
    chosen = await choose.ask(desk, "go back to before", entries[::-1])
    if chosen is not None:
        await _rewind(desk, turns, int(chosen))


async def _rewind(desk: Desk, turns: list[Prompt], which: int) -> None:
    if not 1 <= which <= len(turns):
        raise UsageError(f"there are {len(turns)} prompts; /rewind N goes back to before one of them")
    turn = turns[which - 1]
    if turn.before is None:
        await desk.ask(api.Mutation(session=of(desk)), api.Nothing, command="clear")
    else:
        await desk.ask(api.Rewind(session=of(desk), seq=turn.before), api.Nothing)
    desk.text = turn.text


async def prompts(desk: Desk) -> list[Prompt]:
    """The prompts of the conversation as it goes on now, oldest first."""
    messages: list[Message] = []
    before: int | None = None
    has_more = True
    while has_more:
        page = await desk.ask(api.History(session=of(desk), before=before, limit=PAGE), api.HistoryPage)
        messages[:0] = page.messages
        before = next((message.seq for message in page.messages if message.seq is not None), None)
        has_more = page.has_more and before is not None
    pairs = zip([None, *messages], messages, strict=False)
    return [
        Prompt(text_of(message.content), message.seq or 0, None if last is None else last.seq)
        for last, message in pairs
        if message.role == "user"
    ]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARS else line[: SHOWN_CHARS - 1] + "…"


COMMANDS = (
    Command("compact", "summarise what was said, for the model", compact, "[WHAT MATTERS]"),
    Command("clear", "let the model forget what was said", clear),
    Command("continue", "go on where it stopped", go_on),
    Command("rewind", "go back to before a prompt; files stay as they are", rewind, "[N]"),
)
