"""Thinking that a server sends as text, between `<think>` and `</think>` at the beginning of a reply.

Servers without a reasoning parser for their model do so (vLLM, llama.cpp and Ollama, for R1, QwQ and their like). A tag
counts only where the reply begins: later in it, and in quotations, it is text.
"""

BEGIN, END = "<think>", "</think>"

SPACES = 64
"""Most space before the tag; a reply that begins with more of it has none."""


class ThinkTags:
    """Takes the pieces of a reply's text, cut anywhere."""

    def __init__(self) -> None:
        self._held = ""
        self._thinks = False
        self._thought = False
        self.is_over = False
        """All that follows is text."""

    @property
    def holds(self) -> bool:
        """Something is held back that is told with the next piece, or by `end`."""
        return bool(self._held)

    def feed(self, piece: str) -> tuple[str, str]:
        """What of it is thinking, and what text that comes behind; at most a tag's length is held back."""
        if self.is_over:
            return "", piece
        if self._thinks:
            return self._inside(self._held + piece)
        if self._thought:
            return "", self._behind(piece)
        self._held += piece
        begun = self._held.lstrip()
        if begun.startswith(BEGIN):
            self._thinks = True
            return self._inside(begun[len(BEGIN) :])
        if len(self._held) > SPACES or not BEGIN.startswith(begun):
            self.is_over = True
            held, self._held = self._held, ""
            return "", held
        return "", ""

    def end(self) -> tuple[str, str]:
        """What was held back: nothing more comes."""
        held, self._held = self._held, ""
        self.is_over = True
        return (held, "") if self._thinks else ("", held)

    def _inside(self, text: str) -> tuple[str, str]:
        thought, tag, behind = text.partition(END)
        if tag:
            self._thinks, self._thought, self._held = False, True, ""
            return thought, self._behind(behind)
        kept = next((size for size in range(len(END) - 1, 0, -1) if text.endswith(END[:size])), 0)
        self._held = text[len(text) - kept :]
        return text[: len(text) - kept], ""

    def _behind(self, piece: str) -> str:
        """The text without the blank lines between it and the tag."""
        text = piece.lstrip()
        self.is_over = bool(text)
        return text
