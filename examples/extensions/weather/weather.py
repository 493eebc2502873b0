"""A tool for the model and a command for people, with the SDK. The weather is made up: the example needs no network."""

from hashlib import sha256
from typing import Annotated, Literal

from zotd.sdk import Extension, Prompt

KNOWN = {"berlin": (16, "fog"), "lisbon": (24, "sun"), "oslo": (3, "snow"), "singapore": (31, "thunder")}
SKIES = ("sun", "clouds", "rain", "fog", "wind")

ext = Extension("weather", "1.0.0")


@ext.tool(replay="safe")
async def weather(
    city: Annotated[str, "name of the city, in English"],
    unit: Literal["celsius", "fahrenheit"] = "celsius",
) -> str:
    """Current weather of a city."""
    degrees, sky = KNOWN.get(city.lower()) or invented(city)
    shown = f"{degrees} °C" if unit == "celsius" else f"{degrees * 9 // 5 + 32} °F"
    return f"{city}: {shown}, {sky}"


@ext.command("weather")
def ask(city: str) -> Prompt:
    """Ask the model for the weather of a city."""
    if not city:
        raise ValueError("which city? For example: /weather Berlin")
    return Prompt(f"What is the weather in {city}? One line.")


def invented(city: str) -> tuple[int, str]:
    """Weather for a city that is not in the table: always the same for the same name."""
    digest = sha256(city.lower().encode()).digest()
    return digest[0] % 45 - 10, SKIES[digest[1] % len(SKIES)]


ext.run()
