"""Which reasoning efforts a model of OpenAI takes; any other is answered with 400."""

import re

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""All words of `reasoning.effort`, the least first."""

WANTED = {"minimum": "minimal", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}
"""The word for each level of ours, where the model takes it."""

_TAKEN = tuple(
    (re.compile(pattern), tuple(efforts.split()))
    for pattern, efforts in (
        (r"gpt-5-pro", "high"),
        (r"gpt-5\.\d+-pro", "medium high xhigh"),
        (r"gpt-5\.1-codex-max|gpt-5\.[2-9]-codex", "low medium high xhigh"),
        (r"(gpt-5(\.1)?-)?codex", "low medium high"),
        (r"gpt-5(?!\.)", "minimal low medium high"),
        (r"gpt-5\.1\b", "none low medium high"),
        (r"gpt-5\.[2-5]\b", "none low medium high xhigh"),
        (r"gpt-5\.[6-9]\b", "none low medium high xhigh max"),
        (r"gpt-[6-9]", "low medium high xhigh max"),
    )
)
"""The first that matches wins. That of a model which no rule knows: `COMMON`."""

COMMON = ("low", "medium", "high")
"""What every reasoning model takes."""


def effort(model: str, reasoning: str) -> str | None:
    """The effort for a level of ours: the highest that the model takes and is not above it, else its least.

    None: nothing is said, and the model reasons as much as it does by itself. So it is with `off` for a model that
    cannot be told not to reason.
    """
    taken = next((efforts for pattern, efforts in _TAKEN if pattern.match(model)), COMMON)
    wanted = WANTED.get(reasoning)
    if wanted is None:
        return "none" if "none" in taken else None
    thinking = [word for word in taken if word != "none"]
    within = [word for word in thinking if EFFORTS.index(word) <= EFFORTS.index(wanted)]
    return (within or thinking[:1])[-1]
