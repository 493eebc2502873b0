"""Questions that a tool asks a person while it is called, recorded and shown like approvals."""

from collections.abc import Mapping

from msgspec import Struct

QUESTION = "question"
"""`tool` of the approval that shows such a question; its `args` are the answers so far."""

MESSAGE_CHARS = 4_000
"""Longest message that is shown."""

ABOUT_CHARS = 8_000
"""Longest description of the answers that are wanted."""


class PersonQuestion(Struct, frozen=True):
    """What a tool asks a person while it is called."""

    by: str
    """Who asks."""
    message: str
    fields: Mapping[str, object]
    """The answers that are wanted, by name, with what they are so far; empty: only whether the person agrees."""
    about: str = ""
    """What is wanted, a line for each."""


class PersonAnswer(Struct, frozen=True):
    """What a person has answered."""

    action: str
    """`accept`, `decline`, or `cancel`: nobody has answered."""
    values: Mapping[str, object] = {}


NOBODY = PersonAnswer("cancel")
"""What the tool gets if no person can answer, or none will."""


def words_of(question: PersonQuestion) -> str:
    """Return the question as text for people; it is the tool's, so whoever shows it makes it harmless."""
    head = f"{question.by} asks: {question.message[:MESSAGE_CHARS]}"
    if not question.fields:
        return head
    return f"{head}\n\nto answer, edit these arguments and allow it:\n{question.about[:ABOUT_CHARS]}"
