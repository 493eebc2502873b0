"""Leaves out of a request what its model does not take or do, and says so.

What that is, the user's `[[models]]` say; or the vendor has refused a request because of it. Vendors do that in many
words and with several statuses, and the model would be refused every later request of the session, too.
"""

import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from enum import StrEnum

from msgspec.structs import replace

from zotd.core.ports import ModelRequest
from zotd.core.reply import Part, ServerAdvice
from zotd.core.retry import ModelError
from zotd.wire.api import ModelInfo
from zotd.wire.content import Block, Image, Message, Text, ToolResult

NO_IMAGES = "[an image, which this model cannot see; it is left out]"


class Lack(StrEnum):
    """What a model may not take or do."""

    IMAGES = "images"
    TOOLS = "tools"
    REASONING = "reasoning"


_REFUSED: Mapping[Lack, re.Pattern[str]] = {
    Lack.IMAGES: re.compile(
        r"images?( inputs?| content)?( is| are)? not (supported|enabled)|(not|n't) support(s|ing)? (image|vision|multimodal)"
        r"|no endpoints found that support image|image_url is only supported|unknown variant `?image_url"
        r"|not a (multimodal|vision) model|missing data required for image input|vision is not (supported|enabled)",
        re.IGNORECASE,
    ),
    Lack.TOOLS: re.compile(
        r"(not|n't) support(s|ing)? (tool|function)|no endpoints found that support tool use"
        r"|(tool|function)[ _]?(calling|calls?|use)?`? (is|are) not (supported|enabled)|tool choice requires --"
        r"|tools param requires --",
        re.IGNORECASE,
    ),
    Lack.REASONING: re.compile(r"does not support thinking", re.IGNORECASE),
}
"""Words of Ollama, llama.cpp, vLLM, LM Studio, OpenRouter, OpenAI, DeepSeek, Groq, Mistral and xAI."""

_EFFECTS: Mapping[Lack, str] = {
    Lack.IMAGES: "takes no images, so they are left out of its requests; choose another model for them",
    Lack.TOOLS: "takes no tools, so it can only talk and does nothing to files; choose another model for that",
    Lack.REASONING: "does not reason, so the reasoning level has no effect",
}


Sender = Callable[[ModelRequest], AsyncGenerator[Sequence[Part], None]]
"""Sends a request and yields the parts of the reply, as `core.ports.Model.stream`."""


class Narrowing:
    """Narrows the requests of one run. A message becomes the same object each time, so that it is encoded once."""

    def __init__(self, info: ModelInfo, refused: dict[Lack, str], told: set[str] | None) -> None:
        """Start with what is known.

        Args:
            info: the model, as the catalog and the user describe it.
            refused: what the vendor has refused, with its words; shared by all runs with this model.
            told: what the user of the session was told; shared by its runs. None: there is no user to tell, so nothing is learned.
        """
        self._info = info
        self._refused = refused
        self._told = told
        self._known: dict[int, tuple[Message, Message]] = {}
        """By the identity of a message: itself, which keeps the identity from being used again, and without images."""

    async def stream(self, request: ModelRequest, send: Sender) -> AsyncGenerator[Sequence[Part], None]:
        """Send the request without what the model does not take. The user is told behind the first parts of the reply.

        What the vendor refuses is learned, and the request is sent again without it.
        """
        sent, left_out = self._narrowed(request)
        chunks, has_begun = send(sent), False
        try:
            async with aclosing(chunks):
                async for parts in chunks:
                    yield parts if has_begun else [*parts, *self._news(left_out)]
                    has_begun = True
            return
        except ModelError as error:
            if has_begun or not self.learn(error, sent):
                raise
        again = self.stream(request, send)
        async with aclosing(again):
            async for parts in again:
                yield parts

    def learn(self, error: ModelError, request: ModelRequest) -> bool:
        """Return whether the vendor has refused the request for something that the next one will be without.

        Not if the user says that the model takes it: then the vendor's sentence is more useful than a narrower request.
        """
        said, _, _ = error.sentence.partition(";")
        for lack, words in _REFUSED.items() if self._told is not None else ():
            if words.search(said) and _has(request, lack) and self._says(lack) is not True:
                self._refused[lack] = said
                return True
        return False

    def _narrowed(self, request: ModelRequest) -> tuple[ModelRequest, Sequence[str]]:
        """The request without what the model does not take or do, and one sentence about each of these."""
        left_out = []
        if request.tools and self._lacks(Lack.TOOLS):
            request = replace(request, tools=[])
            left_out.append(self._sentence(Lack.TOOLS))
        if self._lacks(Lack.IMAGES) and _has(request, Lack.IMAGES):
            request = replace(request, messages=[self._without_images(message) for message in request.messages])
            left_out.append(self._sentence(Lack.IMAGES))
        if self._lacks(Lack.REASONING) and _has(request, Lack.REASONING):
            request = replace(request, reasoning="off")
            left_out.append(self._sentence(Lack.REASONING))
        return request, left_out

    def _news(self, left_out: Sequence[str]) -> list[Part]:
        """What shows the sentences that the user was not told yet."""
        if self._told is None:
            return []
        news = [sentence for sentence in left_out if sentence not in self._told]
        self._told.update(news)
        return [ServerAdvice(sentence) for sentence in news]

    def _lacks(self, lack: Lack) -> bool:
        return lack in self._refused or self._says(lack) is False

    def _says(self, lack: Lack) -> bool | None:
        """What the user says; of reasoning that a model is told to, not that it can."""
        match lack:
            case Lack.IMAGES:
                return self._info.images
            case Lack.TOOLS:
                return self._info.tools
            case Lack.REASONING:
                return None

    def _sentence(self, lack: Lack) -> str:
        words = self._refused.get(lack)
        return f"{self._info.id} {_EFFECTS[lack]}" + (f" ({words})" if words else "")

    def _without_images(self, message: Message) -> Message:
        if not _has_images(message.content):
            return message
        if id(message) not in self._known:
            content: list[Block] = [_block(block) for block in message.content]
            self._known[id(message)] = message, replace(message, content=content)
        return self._known[id(message)][1]


def _has(request: ModelRequest, lack: Lack) -> bool:
    if lack is Lack.TOOLS:
        return bool(request.tools)
    if lack is Lack.REASONING:
        return request.reasoning != "off"
    return any(_has_images(message.content) for message in request.messages)


def _has_images(content: Sequence[Block]) -> bool:
    return any(isinstance(b, Image) or (isinstance(b, ToolResult) and _has_images([*b.content])) for b in content)


def _block(block: Block) -> Block:
    if isinstance(block, ToolResult):
        return replace(block, content=list(_texts(block.content)))
    return Text(NO_IMAGES) if isinstance(block, Image) else block


def _texts(content: Iterable[Text | Image]) -> Iterable[Text | Image]:
    return (Text(NO_IMAGES) if isinstance(block, Image) else block for block in content)
