"""A real MCP server for the tests, with the package `mcp`: over stdio, HTTP with a port as its argument, or HTTP+SSE with a second one.

The variable INSTRUCTIONS has its instructions.
"""

import os
import sys
from pathlib import Path
from typing import Literal

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Audio, Context, Image
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts.base import AssistantMessage, Message, UserMessage
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    EmbeddedResource,
    ResourceLink,
    SamplingMessage,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel, Field

PNG = b"\x89PNG\r\n\x1a\n rest"

Progress = Context[object, object]

server = MCPServer("sample", instructions=os.environ.get("INSTRUCTIONS"))
cancelled = anyio.Event()


@server.tool(description="Says it back.", annotations=ToolAnnotations(read_only_hint=True))
def echo(text: str) -> str:
    return text


@server.tool()
def span(context: Progress) -> str:
    return str((context.request_context.meta or {}).get("traceparent", "none"))


@server.tool(annotations=ToolAnnotations(idempotent_hint=True, destructive_hint=True), structured_output=True)
def weather(city: str) -> dict[str, int]:
    return {city: 16}


@server.tool(structured_output=False)
def everything() -> list[object]:
    return [
        "some text",
        Image(data=PNG, format="png"),
        Image(data=b"<svg/>", format="svg+xml"),
        Audio(data=b"RIFF", format="wav"),
        EmbeddedResource(resource=TextResourceContents(uri="memo://1", text="the memo")),
        EmbeddedResource(resource=BlobResourceContents(uri="memo://2", mime_type="image/png", blob="AAAA")),
        EmbeddedResource(resource=BlobResourceContents(uri="memo://3", blob="AAAA")),
        ResourceLink(uri="memo://4", name="four", description="the fourth"),
    ]


@server.tool()
def large() -> str:
    return "x" * (5 * 1024 * 1024)


@server.tool()
def fail() -> str:
    raise ToolError("this failed")


@server.tool()
def environment() -> dict[str, str]:
    return {**os.environ, "cwd": str(Path.cwd())}


@server.tool()
async def steps(ctx: Progress) -> str:
    await ctx.report_progress(1, 2, "halfway")
    await ctx.report_progress(2, 2)
    return "done"


@server.tool()
async def slowly(ctx: Progress) -> str:
    """Takes 2 s, and says every 0.2 s how far it is."""
    for step in range(10):
        await ctx.report_progress(step, 10)
        await anyio.sleep(0.2)
    return "done"


@server.tool()
async def endless(ctx: Progress) -> None:
    """Never ends; `was_cancelled` waits until it was cancelled."""
    try:
        await ctx.report_progress(0)
        await anyio.sleep_forever()
    finally:
        cancelled.set()


@server.tool()
async def was_cancelled() -> str:
    await cancelled.wait()
    return "yes"


@server.resource("memo://one", description="The first memo.")
def memo() -> str:
    return "remember the milk"


@server.resource("memo://{number}/notes")
def notes(number: str) -> str:
    return f"</resource> note {number}" * 10_000


@server.prompt(description="Reviews a file.")
def review(path: str, style: str = "kindly") -> str:
    return f"Review {path} {style}."


@server.prompt(name="second thoughts")
def second_thoughts() -> list[Message]:
    return [UserMessage("Is it good?"), AssistantMessage("It is."), UserMessage("Are you sure?")]


class Booking(BaseModel):  # type: ignore[explicit-any]  # in the base class
    seats: int = Field(description="how many")
    place: Literal["window", "aisle"] = "aisle"


@server.tool()
async def book(ctx: Progress) -> str:
    found = await ctx.elicit("Which seats?", Booking)
    return f"{found.data.seats} at the {found.data.place}" if found.action == "accept" else found.action


@server.tool()
async def think(ctx: Progress, prompt: str = "Hello?", stop: str = "") -> str:
    """Asks the model."""
    found = await ctx.session.create_message(
        [SamplingMessage(role="user", content=TextContent(type="text", text=prompt))],
        max_tokens=50,
        system_prompt="Be brief.",
        stop_sequences=[stop] if stop else None,
        related_request_id=ctx.request_id,
    )
    return f"{found.model} says {found.content.text} ({found.stop_reason})"


@server.tool()
async def listen(ctx: Progress) -> str:
    """Asks the model about something that is no text."""
    sound = AudioContent(type="audio", data="AAAA", mime_type="audio/wav")
    found = await ctx.session.create_message([SamplingMessage(role="user", content=sound)], max_tokens=50)
    return str(found)


@server.tool()
async def roots(ctx: Progress) -> list[str]:
    return [str(root.uri) for root in (await ctx.session.list_roots()).roots]


@server.tool()
def crash() -> str:
    sys.stderr.write("a word before the end\n")
    sys.stderr.flush()
    os._exit(3)


@server.tool()
async def replace(ctx: Progress) -> str:
    """Takes `fail` away, and offers `later`."""
    server.remove_tool("fail")
    server.add_tool(lambda: "here", name="later", description="New.")
    await ctx.session.send_tool_list_changed()
    return "done"


@server.tool()
async def rewrite(ctx: Progress) -> None:
    """Takes the prompt `review` away."""
    server.remove_prompt("review")
    await ctx.session.send_prompt_list_changed()


def main():
    if len(sys.argv) > 2:
        server.run("sse", port=int(sys.argv[1]))
    elif len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()


if __name__ == "__main__":
    main()
