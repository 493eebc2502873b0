"""Questions that a tool asks the session's model while it is called (in MCP: sampling)."""

from collections.abc import Sequence

from msgspec import Struct

from zotd.core import budget, early_summary
from zotd.wire.content import Image, Message, Text

SAMPLING = "sampling"
"""How rules and questions name it: `sampling:` and the extension that asks. Also `purpose` of the usage row."""

SIDE_QUESTION = "side_question"
"""`purpose` of the usage row of a person's question beside the conversation, and what its attempt is `asked_by`."""

WEB_SEARCH = "web_search"
"""`purpose` of the usage row of a search by a vendor's model. Its attempt is `asked_by` this, a colon and the tool call."""

BESIDE = frozenset({early_summary.PURPOSE, SAMPLING, SIDE_QUESTION, WEB_SEARCH})
"""Purposes of requests that are sent while a run goes on, beside its own."""


def purpose_of(asked_by: str) -> str:
    """Return the purpose of a request that is `asked_by` a tool call, or by a person."""
    if asked_by.startswith(f"{WEB_SEARCH}:"):
        return WEB_SEARCH
    return SIDE_QUESTION if asked_by == SIDE_QUESTION else SAMPLING


PROMPT_CHARS = 200_000
"""Longest prompt, system prompt included: some 60,000 tokens, at which a request costs cents and not dollars."""

PROMPT_IMAGES = 8
"""Most images in it."""

MAX_OUTPUT = 8_192
"""Most output tokens that are asked for, whatever the tool wishes."""

SHOWN_CHARS = 8_000
"""How much of a prompt people see when they are asked about it."""


class ModelQuestion(Struct, frozen=True):
    """What a tool asks the model. The model gets this and nothing of the session."""

    by: str
    """The extension that asks."""
    messages: Sequence[Message]
    system: str = ""
    max_tokens: int = MAX_OUTPUT

    @property
    def tool(self) -> str:
        """What rules and questions about it name."""
        return f"{SAMPLING}:{self.by}"

    @property
    def fault(self) -> str:
        """Why it cannot be asked; empty: it can."""
        if not self.messages or self.messages[0].role != "user":
            return "the messages do not begin with one of the user"
        if len(self.system) + sum(map(len, self._texts)) > PROMPT_CHARS:
            return f"the prompt has more than {PROMPT_CHARS:,} characters"
        if self._images > PROMPT_IMAGES:
            return f"the prompt has more than {PROMPT_IMAGES} images"
        if self.max_tokens < 1:
            return "the limit of output tokens is below 1"
        return ""

    @property
    def tokens(self) -> int:
        """Roughly how many tokens the model reads."""
        return len(self.system) // budget.CHARS_PER_TOKEN + sum(budget.size(one.content) for one in self.messages)

    def shown(self) -> str:
        """Return the question as text for people; it is the tool's, so whoever shows it makes it harmless."""
        told = [f"system: {self.system}"] if self.system else []
        for message in self.messages:
            told += [f"{message.role}: {block.text}" for block in message.content if isinstance(block, Text)]
        text = "\n\n".join(told)
        if len(text) > SHOWN_CHARS:
            text = f"{text[:SHOWN_CHARS]}\n… and {len(text) - SHOWN_CHARS:,} more characters"
        images = f" and {self._images} images" if self._images else ""
        head = f"{self.by} asks this session's model, for up to {self.max_tokens:,} tokens of output"
        return f"{head}. It sends this{images}, nothing of the session, and gets the answer:\n\n{text}"

    @property
    def _texts(self) -> list[str]:
        return [block.text for one in self.messages for block in one.content if isinstance(block, Text)]

    @property
    def _images(self) -> int:
        return sum(isinstance(block, Image) for one in self.messages for block in one.content)


class QuestionReply(Struct, frozen=True):
    """What a tool gets from the model."""

    action: str
    """`accept`; `decline`: a person or a rule does not want it; `cancel`: there is no answer for another reason."""
    text: str = ""
    model: str = ""
    stop: str = ""
    """Why the model stopped: `end_turn`, or `length` when the limit of output was reached."""
    reason: str = ""
    """Why there is no answer, as a sentence."""
