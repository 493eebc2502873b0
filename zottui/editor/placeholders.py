"""What was pasted and is too long to be read in an editor: a placeholder stands for it, `[pasted #1 · 60 lines]`.

A placeholder is one thing: the cursor jumps over it, and who deletes a piece of it deletes it. What it stands for is
kept until the editor is cleared, so that undo can bring it back.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from zotd.wire.api import PromptImage
from zotd.wire.base import Frozen
from zottui.editor.whole import Span

PASTED_CHARS = 1_000
"""A paste of more becomes a placeholder: three paragraphs are still read where they are, and changed."""

PASTED_LINES = 15
"""So does one of more lines: twice what the editor shows."""

_NUMBER = re.compile(r"#(\d+)")


class EditorDraft(Frozen, frozen=True):
    """What the editor holds; also what a file of drafts holds."""

    text: str
    """With placeholders."""
    pastes: dict[str, str] = {}  # noqa: RUF012  (msgspec copies an empty default)
    """What was pasted, by placeholder."""
    images: dict[str, PromptImage] = {}  # noqa: RUF012  (as above)
    """By placeholder."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What the editor holds, as the daemon wants it."""

    text: str
    """With what was pasted in the place of its placeholders; those of images stay."""
    images: tuple[PromptImage, ...]
    """In the order of their placeholders."""
    draft: EditorDraft
    """The same as it was in the editor, for `Editor.put_back`."""


def is_long(text: str) -> bool:
    """Whether a paste becomes a placeholder."""
    return len(text) > PASTED_CHARS or lines(text) > PASTED_LINES


def lines(text: str) -> int:
    """The lines of a paste; a newline at its end begins none."""
    return text.removesuffix("\n").count("\n") + 1


class Placeholders:
    """The placeholders of one draft, and what they stand for."""

    def __init__(self) -> None:
        self.pastes: dict[str, str] = {}
        """By placeholder."""
        self.images: dict[str, PromptImage] = {}
        """By placeholder."""

    def forget(self) -> None:
        """Stand for nothing."""
        self.pastes.clear()
        self.images.clear()

    def adopted(self, draft: EditorDraft) -> str:
        """The text of `draft`, whose placeholders stand for the same here; those whose name is taken get another."""
        theirs = Placeholders()
        theirs.pastes, theirs.images = draft.pastes, draft.images
        pieces, at = [], 0
        for found in theirs.found(draft.text):
            pieces += [draft.text[at : found.start()], self._adopt(found.group(), draft)]
            at = found.end()
        return "".join([*pieces, draft.text[at:]])

    def paste(self, content: str) -> str:
        """A new placeholder for a text."""
        count = lines(content)
        size = f"{count} lines" if count > 1 else f"{len(content):,} characters"
        label = f"[pasted #{self._number()} · {size}]"
        self.pastes[label] = content
        return label

    def image(self, image: PromptImage, name: str) -> str:
        """A new placeholder for an image; `name` says which, in its own words."""
        plain = re.sub(r"[\[\]\s]+", " ", name).strip() or "image"
        label = f"[image #{self._number()} · {plain}]"
        self.images[label] = image
        return label

    def spans(self, text: str) -> list[Span]:
        """Where placeholders stand in `text`, in order."""
        return [found.span() for found in self.found(text)]

    def draft(self, text: str) -> EditorDraft:
        """`text` with what its placeholders stand for."""
        labels = dict.fromkeys(found.group() for found in self.found(text))
        pastes = {label: self.pastes[label] for label in labels if label in self.pastes}
        return EditorDraft(text, pastes, {label: self.images[label] for label in labels if label in self.images})

    def submission(self, text: str) -> Submission:
        """What `text` says to the daemon."""
        draft = self.draft(text)
        return Submission(self.expanded(text), tuple(draft.images.values()), draft)

    def expanded(self, text: str) -> str:
        """`text` with what was pasted in the place of its placeholders; those of images stay."""
        pieces, at = [], 0
        for found in self.found(text):
            label = found.group()
            pieces += [text[at : found.start()], self.pastes.get(label, label)]
            at = found.end()
        return "".join([*pieces, text[at:]])

    def collapsed(self, text: str) -> str:
        """`text` with placeholders where it holds what was pasted, unchanged: what `expanded` has made of them."""
        pieces = [text]  # what is left of it and placeholders, in turn: nothing is looked for in those
        for label, content in sorted(self.pastes.items(), key=lambda item: -len(item[1])):
            if content:
                pieces = [
                    part
                    for index, piece in enumerate(pieces)
                    for part in ([piece] if index % 2 else _separated(piece, content, label))
                ]
        return "".join(pieces)

    def lost(self, before: str, after: str) -> list[Span]:
        """The placeholders in `before`, when `after` has fewer: one of them was deleted, or cut."""
        spans = self.spans(before)
        return spans if spans and len(self.spans(after)) < len(spans) else []

    def found(self, text: str) -> Iterator[re.Match[str]]:
        """The placeholders in `text`, in order."""
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
        """One more than the highest that was given: a draft that was adopted may begin with any."""
        numbers = [_NUMBER.search(label) for label in (*self.pastes, *self.images)]
        return max((int(number[1]) for number in numbers if number), default=0) + 1


def _separated(text: str, content: str, label: str) -> list[str]:
    """The pieces of `text` between which there is `content`, and between those pieces `label`."""
    first, *rest = text.split(content)
    return [first, *(part for piece in rest for part in (label, piece))]
