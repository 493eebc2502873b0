"""One name for each key. prompt_toolkit has two for keys that terminals send as ctrl and a letter."""

# Our names by prompt_toolkit's: terminals send Enter as ctrl+m, Tab as ctrl+i and Backspace as ctrl+h.
_NAMES = {"c-m": "enter", "c-i": "tab", "c-h": "backspace", "s-tab": "backtab"}

TYPED = "<any>"
"""The name of a key that types a character."""

PASTED = "<bracketed-paste>"


def named(name: str) -> str:
    """Return our name of a prompt_toolkit key."""
    return _NAMES.get(name, name)


def letter(name: str, text: str) -> str:
    """Return the lower-case character that a key types, or else the key's name."""
    return text.lower() if name == TYPED and len(text) == 1 else named(name)
