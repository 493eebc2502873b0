"""What keys are called here: one name for each, as people know it."""

_NAMES = {"c-m": "enter", "c-i": "tab", "c-h": "backspace", "s-tab": "backtab"}
"""Of keys that terminals cannot tell from a letter with ctrl, by the name that prompt_toolkit may give them."""

TYPED = "<any>"
"""A character."""

PASTED = "<bracketed-paste>"


def named(name: str) -> str:
    """The one name of a key of prompt_toolkit."""
    return _NAMES.get(name, name)


def letter(name: str, text: str) -> str:
    """The small letter of a key that is one, else the key's name."""
    return text.lower() if name == TYPED and len(text) == 1 else named(name)
