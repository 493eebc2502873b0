"""The SDK for extensions written in Python.

Standard library only, Python 3.9 or newer, nothing imported from the rest of zot: this directory can be copied beside
an extension, under any name.

    from zotd.sdk import Extension

    ext = Extension("weather", "1.0.0")

    @ext.tool
    async def weather(city: str) -> str:
        "Current weather of a city."
        return f"{city}: 16 °C, fog"

    ext.run()
"""

from .calls import Call, CommandCall, HostCall
from .extension import Extension
from .panel import OpenPanel, Panel
from .shapes import ArgumentError
from .values import Decision, Display, Event, HelloAck, Image, Insert, Message, Noop, Prompt, Result

__all__ = [
    "ArgumentError",
    "Call",
    "CommandCall",
    "Decision",
    "Display",
    "Event",
    "Extension",
    "HelloAck",
    "HostCall",
    "Image",
    "Insert",
    "Message",
    "Noop",
    "OpenPanel",
    "Panel",
    "Prompt",
    "Result",
]
