"""Questions of a server to the session's model (sampling), passed to the host as questions of the call that is running."""

from collections.abc import Sequence

from mcp.client.session import ClientRequestContext
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CreateMessageRequestParams,
    CreateMessageResult,
    ErrorData,
    ImageContent,
    SamplingMessage,
    TextContent,
)

from zotd.bridges.mcp.host_questions import MAX_QUESTIONS, HostQuestions
from zotd.bridges.mcp.running_calls import RunningCalls
from zotd.sdk.pipe import Frame

PROMPT_CHARS = 200_000
"""Longest prompt that is passed on; the host takes no longer one."""

IMAGE_CHARS = 3 * 1024 * 1024
"""Most base64 of all images of a prompt, which has to fit into a frame."""

DECLINED = -1
"""Code of the error of a request that a person does not want, as the specification of MCP has it."""

_STOPS = {"end_turn": "endTurn", "length": "maxTokens"}


class Sampling:
    """What one server asks the model."""

    def __init__(self, questions: HostQuestions, calls: RunningCalls) -> None:
        """`questions` are those to the host, `calls` those that run in the server."""
        self._questions = questions
        self._calls = calls

    async def ask(
        self, context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        """Answer a request of the server (the package's `SamplingFnT`)."""
        call = self._calls.asking(context)
        if call is None:
            return _error("the model can only be asked during a call of a tool, of one session at a time")
        if not self._questions.may_ask(call):
            return _error(f"a call may ask {MAX_QUESTIONS} questions")
        if params.tools:
            return ErrorData(code=INVALID_PARAMS, message="the model is asked without tools (no `sampling.tools`)")
        try:
            messages = _messages(params.messages, params.system_prompt or "")
        except ValueError as error:
            return ErrorData(code=INVALID_PARAMS, message=str(error))
        question = {"messages": messages, "system": params.system_prompt or "", "max_tokens": max(1, params.max_tokens)}
        try:
            answer = await self._questions.ask(call, "ask_model", question, waiting="waiting for the model")
        except ValueError as error:
            return ErrorData(code=INVALID_PARAMS, message=f"the prompt is too long: {error}")
        if answer.get("action") != "accept":
            reason = str(answer.get("reason") or "there is no answer")
            is_declined = answer.get("action") == "decline"
            return ErrorData(code=DECLINED, message=reason) if is_declined else _error(reason)
        text, stop = _stopped(str(answer.get("text")), params.stop_sequences or ())
        return CreateMessageResult(
            role="assistant",
            content=TextContent(type="text", text=text),
            model=str(answer.get("model")),
            stop_reason=stop or _STOPS.get(str(answer.get("stop")), "endTurn"),
        )


def _error(sentence: str) -> ErrorData:
    return ErrorData(code=INTERNAL_ERROR, message=sentence)


def _messages(messages: Sequence[SamplingMessage], system: str) -> list[Frame]:
    """Convert a prompt.

    Raises:
        ValueError: it is too long, or the model cannot be asked so.
    """
    found: list[Frame] = []
    chars, image_chars = len(system), 0
    for message in messages:
        blocks: list[Frame] = []
        for block in message.content_as_list:
            match block:
                case TextContent():
                    chars += len(block.text)
                    blocks.append({"type": "text", "text": block.text})
                case ImageContent():
                    image_chars += len(block.data)
                    blocks.append({"type": "image", "mime_type": block.mime_type, "data": block.data})
                case _:
                    raise ValueError(f"the model takes text and images, no content of type `{block.type}`")
        if chars > PROMPT_CHARS or image_chars > IMAGE_CHARS:
            raise ValueError(f"the prompt has more than {PROMPT_CHARS:,} characters, or images that are too large")
        found.append({"role": message.role, "content": blocks})
    return found


def _stopped(text: str, sequences: Sequence[str]) -> tuple[str, str]:
    """Cut the text before the first of these sequences, and say so: not every model takes them."""
    ends = [end for end in (text.find(one) for one in sequences if one) if end >= 0]
    return (text[: min(ends)], "stopSequence") if ends else (text, "")
