"""Converts stored messages to blocks, for printing at attach and for the viewer."""

from collections.abc import Container, Iterable, Iterator, Sequence

from zotd.wire.content import Block as Content
from zotd.wire.content import Image, Message, ShellRun, Text, ToolCall, ToolResult
from zottui.blocks import Block, CodeLines, ToolRan, UserSaid
from zottui.markdown.stream import Stream


def text_of(content: Iterable[Content]) -> str:
    """Return the joined text of a message or result."""
    return "".join(block.text for block in content if isinstance(block, Text))


def images_in(content: Iterable[Content]) -> int:
    """Count the images of a message or result."""
    return sum(isinstance(block, Image) for block in content)


def prose(markdown: str) -> tuple[Block, ...]:
    """Split a complete reply into blocks."""
    finished, rest = Stream().feed(markdown)
    return (*finished, *rest.end())


def fences(markdown: str) -> list[str]:
    """Return the content of each fenced code block of a reply, without the fence marks, for `/copy`."""
    found: list[list[str]] = []
    for block in prose(markdown):
        if isinstance(block, CodeLines):
            if block.opens:
                found.append([])
            found[-1] += block.lines
    return ["\n".join(lines) for lines in found]


def is_prompt(message: Message) -> bool:
    """Return whether the message is a prompt, and not the output of a user's `!command`."""
    return message.role == "user" and message.shell is None


def ran(call: ToolCall, result: ToolResult | None, number: int) -> ToolRan:
    """Return the block of a stored call and its result, if it has one."""
    if result is None:
        return ToolRan(call.name, call.args, "", is_open=True, number=number)
    return ToolRan(
        call.name,
        call.args,
        text_of(result.content),
        is_error=result.is_error,
        images=images_in(result.content),
        number=number,
    )


def ran_by_hand(shell: ShellRun, content: Iterable[Content], number: int) -> ToolRan:
    """Return the block of a user's `!command` and its output."""
    name = "!" if shell.context else "!!"
    failed = shell.exit != 0 or shell.interrupted
    return ToolRan(name, {"command": shell.command}, text_of(content), failed, seconds=shell.took_s, number=number)


def open_calls(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """Return the calls of the last reply without a result: they run, wait, or run once a held session continues."""
    done = _results(messages)
    last = next((message for message in reversed(messages) if message.role == "assistant"), None)
    parts = last.content if last is not None else ()
    return tuple(part for part in parts if isinstance(part, ToolCall) and part.id not in done)


def _results(messages: Iterable[Message]) -> dict[str, ToolResult]:
    return {part.call_id: part for message in messages for part in message.content if isinstance(part, ToolResult)}


def blocks_of(
    messages: Sequence[Message], numbered_from: int = 1, *, without: Container[str] = frozenset()
) -> Iterator[Block]:
    """Yield the blocks of messages in order. A call is joined with its result, at the position of the call.

    Calls whose id is in `without` are skipped and get no number.
    """
    results = _results(messages)  # of all messages first: a call's result comes in a later message
    number = numbered_from
    for message in messages:
        if message.shell is not None:
            yield ran_by_hand(message.shell, message.content, number)
            number += 1
        elif message.role == "user":
            yield UserSaid(text_of(message.content), images_in(message.content))
        if message.role != "assistant":
            continue
        yield from prose(text_of(message.content))
        for part in message.content:
            if isinstance(part, ToolCall) and part.id not in without:
                yield ran(part, results.get(part.id), number)
                number += 1


def calls_in(messages: Iterable[Message], *, without: Container[str] = frozenset()) -> int:
    """Return how many calls `blocks_of` numbers."""
    return sum(
        message.shell is not None
        or (message.role == "assistant" and isinstance(part, ToolCall) and part.id not in without)
        for message in messages
        for part in message.content
    )


LAST_TURNS = 20
"""Prompts whose turns are printed at attach; the viewer has the earlier ones."""


def last_turns(messages: Sequence[Message], turns: int = LAST_TURNS) -> Sequence[Message]:
    """Return the newest messages with at most `turns` prompts, beginning with a prompt."""
    prompts = [at for at, message in enumerate(messages) if is_prompt(message)]
    return messages[prompts[-turns] :] if len(prompts) > turns else messages
