"""Placeholders for long pastes and images in the editor: `[pasted #1 · 60 lines]`.

A placeholder is one unit: the cursor jumps over it, and deleting a part deletes all of it. Its content is kept until the
editor is cleared, so that undo can restore it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from zotd.wire.api import PromptImage
from zotd.wire.base import Frozen
from zottui.editor.whole import Span

PASTED_CHARS = 1_000
"""Longer pastes become a placeholder. About three paragraphs are still read and edited in place."""

PASTED_LINES = 15
"""Pastes with more lines become a placeholder too: twice the height of the editor."""

_NUMBER = re.compile(r"#(\d+)")


class EditorDraft(Frozen, frozen=True):
    """The editor's content; also the format of draft files."""

    text: str
    """The text with placeholders."""
    pastes: dict[str, str] = {}  # noqa: RUF012  (msgspec copies an empty default)
    """Pasted texts by placeholder."""
    images: dict[str, PromptImage] = {}  # noqa: RUF012  (as above)
    """Images by placeholder."""


@dataclass(frozen=True, slots=True)
class Submission:
    """The editor's content in the form for the daemon."""

    text: str
    """The text with pastes in place of their placeholders; those of images stay."""
    images: tuple[PromptImage, ...]
    """Images in the order of their placeholders."""
    draft: EditorDraft
    """The content as it was in the editor, for `PromptEditor.put_back`."""


def is_long(text: str) -> bool:
    """Return whether a paste becomes a placeholder."""
    return len(text) > PASTED_CHARS or lines(text) > PASTED_LINES


def lines(text: str) -> int:
    """Count the lines of a paste; a trailing newline does not begin one."""
    return text.removesuffix("\n").count("\n") + 1


class Placeholders:
    """The placeholders of one draft and their content."""

    def __init__(self) -> None:
        self.pastes: dict[str, str] = {}
        """Texts by placeholder."""
        self.images: dict[str, PromptImage] = {}
        """Images by placeholder."""

    def forget(self) -> None:
        """Remove all placeholders and their content."""
        self.pastes.clear()
        self.images.clear()

    def adopted(self, draft: EditorDraft) -> str:
        """Add the placeholders of `draft` and return its text; labels that are in use here are renamed."""
        theirs = Placeholders()
        theirs.pastes, theirs.images = draft.pastes, draft.images
        pieces, at = [], 0
        for found in theirs.found(draft.text):
            pieces += [draft.text[at : found.start()], self._adopt(found.group(), draft)]
            at = found.end()
        return "".join([*pieces, draft.text[at:]])

    def paste(self, content: str) -> str:
        """Add a placeholder for a text and return its label."""
        count = lines(content)
        size = f"{count} lines" if count > 1 else f"{len(content):,} characters"
        label = f"[pasted #{self._number()} · {size}]"
        self.pastes[label] = content
        return label

    def image(self, image: PromptImage, name: str) -> str:
        """Add a placeholder for an image and return its label, which contains `name`."""
        # Brackets in a file name would make the label ambiguous.
        plain = re.sub(r"[\[\]\s]+", " ", name).strip() or "image"
        label = f"[image #{self._number()} · {plain}]"
        self.images[label] = image
        return label

    def spans(self, text: str) -> list[Span]:
        """Return the spans of the placeholders in `text`, in order."""
        return [found.span() for found in self.found(text)]

    def draft(self, text: str) -> EditorDraft:
        """Return `text` with the content of its placeholders."""
        labels = dict.fromkeys(found.group() for found in self.found(text))
        pastes = {label: self.pastes[label] for label in labels if label in self.pastes}
        return EditorDraft(text, pastes, {label: self.images[label] for label in labels if label in self.images})

    def submission(self, text: str) -> Submission:
        """Return `text` in the form for the daemon."""
        draft = self.draft(text)
        return Submission(self.expanded(text), tuple(draft.images.values()), draft)

    def expanded(self, text: str) -> str:
        """Return `text` with pastes in place of their placeholders; those of images stay."""
        pieces, at = [], 0
        for found in self.found(text):
            label = found.group()
            pieces += [text[at : found.start()], self.pastes.get(label, label)]
            at = found.end()
        return "".join([*pieces, text[at:]])

    def collapsed(self, text: str) -> str:
        """Return `text` with placeholders in place of unchanged pastes; the inverse of `expanded`."""
        pieces = [text]  # alternately text and labels: odd indices are labels, which are not searched
        # Longest first: a shorter paste may be a part of a longer one.
        for label, content in sorted(self.pastes.items(), key=lambda item: -len(item[1])):
            if content:
                pieces = [
                    part
                    for index, piece in enumerate(pieces)
                    for part in ([piece] if index % 2 else _separated(piece, content, label))
                ]
        return "".join(pieces)

    def lost(self, before: str, after: str) -> list[Span]:
        """Return the placeholders in `before` if `after` has fewer: one of them was deleted or cut."""
        spans = self.spans(before)
        return spans if spans and len(self.spans(after)) < len(spans) else []

    def found(self, text: str) -> Iterator[re.Match[str]]:
        """Find the placeholders in `text`, in order."""
        known = [*self.pastes, *self.images]
        return re.finditer("|".join(map(re.escape, known)), text) if known else iter(())

    def _adopt(self, label: str, draft: EditorDraft) -> str:
        content = draft.pastes.get(label)
        if content is not None:
            if self.pastes.setdefault(label, content) != content:
                return self.paste(content)
        elif self.images.setdefault(label, draft.images[label]) != draft.images[label]:
            return self.image(draft.images[label], label.partition(" · ")[2])
        return label

    def _number(self) -> int:
        """Return the next number. Not a counter: an adopted draft may contain any numbers."""
        numbers = [_NUMBER.search(label) for label in (*self.pastes, *self.images)]
        return max((int(number[1]) for number in numbers if number), default=0) + 1


def _separated(text: str, content: str, label: str) -> list[str]:
    """Split `text` at each `content` and put `label` between the parts."""
    first, *rest = text.split(content)
    return [first, *(part for piece in rest for part in (label, piece))]
