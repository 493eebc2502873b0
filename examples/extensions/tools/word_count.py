"""A tool in one file: no manifest, no import of the SDK. Save it, and the model has it."""

import asyncio
from pathlib import Path
from typing import Annotated, Literal


async def run(
    path: Annotated[str, "a text file"],
    unit: Literal["words", "lines", "characters"] = "words",
) -> dict[str, object]:
    """Count the words, lines or characters of a text file."""
    text = await asyncio.to_thread(Path(path).read_text, "utf-8")
    return {"path": path, unit: _count(text, unit)}


def _count(text: str, unit: str) -> int:
    return {"words": len(text.split()), "lines": len(text.splitlines()), "characters": len(text)}[unit]
