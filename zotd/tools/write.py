"""The tool `write`: creates or replaces a whole file."""

from typing import Annotated

import msgspec
from msgspec import Meta

from zotd.core.ports import Replay, ToolContext, ToolOutcome
from zotd.tools.shared import BuiltinTool, content_before, errors_after, resolve, text_outcome, write_through


class WriteArgs(msgspec.Struct, frozen=True):
    """Arguments of `write`."""

    path: Annotated[str, Meta(description="Path of the file, absolute or relative to the working directory")]
    content: Annotated[str, Meta(description="The whole content, written as UTF-8")]


async def _write(args: WriteArgs, context: ToolContext) -> ToolOutcome:
    path = resolve(args.path, context)
    data = args.content.encode()
    before = await content_before(path, context)
    existed = await write_through(path, data, context)
    shown = f"{'Replaced' if existed else 'Created'} {args.path} ({len(data):,} bytes)"
    return text_outcome(shown + await errors_after(path, before, data, context))


TOOL = BuiltinTool(
    WriteArgs,
    _write,
    name="write",
    description=(
        "Create a file, or replace all of its content; missing directories are made. "
        "To change a part of a file, use edit."
    ),
    parallel=False,
    replay=Replay.NEVER,
)
