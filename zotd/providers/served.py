"""How large the context window is with which a model server of the user has loaded a model, or is to load it.

No request of OpenAI's API can ask for a size, and these servers choose one by the memory that they find. Ollama drops what
does not fit without a word, from the start: the instructions and the tools go first. Its own API is asked for a size.
"""

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

MIN_CONTEXT = 16_384
"""Tokens below which the instructions, the tools and a file or two do not fit."""

GOOD_CONTEXT = 32_768
"""Tokens that the advice asks for, and that Ollama is asked for if the user sets no other number: twice what is needed at
least. The memory that a context takes grows with it."""

REPLY_BYTES = 1024 * 1024
"""Most that is read of a server's answer."""


class _Model(msgspec.Struct):
    """One model in a list of Ollama, vLLM or LM Studio."""

    id: str = ""
    name: str = ""
    context_length: int = 0
    max_model_len: int = 0
    loaded_context_length: int = 0


class _Settings(msgspec.Struct, frozen=True):
    n_ctx: int = 0


class _Answer(msgspec.Struct):
    models: list[_Model] = []
    data: list[_Model] = []
    default_generation_settings: _Settings = _Settings()


class ContextSource(NamedTuple):
    """Where a kind of server tells the size of a context window, and how to start it with a larger one."""

    path: str
    tokens: Callable[[_Answer, str], int]
    advice: str


def _of_ollama(answer: _Answer, model: str) -> int:
    return _first(one.context_length for one in answer.models if one.name in {model, f"{model}:latest"})


def _of_llama_cpp(answer: _Answer, _: str) -> int:
    return answer.default_generation_settings.n_ctx


def _of_vllm(answer: _Answer, model: str) -> int:
    return _first(one.max_model_len for one in answer.data if one.id == model)


def _of_lm_studio(answer: _Answer, model: str) -> int:
    return _first(one.loaded_context_length for one in answer.data if one.id == model)


def _first(found: Iterable[int]) -> int:
    return next(iter(found), 0)


SOURCES: Mapping[str, ContextSource] = {
    "ollama": ContextSource(
        "/api/ps",
        _of_ollama,
        f"OLLAMA_CONTEXT_LENGTH={GOOD_CONTEXT} ollama serve, or remove /v1 from its base_url, and zot asks for one",
    ),
    "llamacpp": ContextSource("/props", _of_llama_cpp, f"llama-server --ctx-size {GOOD_CONTEXT} …"),
    "vllm": ContextSource("/v1/models", _of_vllm, f"vllm serve {{model}} --max-model-len {GOOD_CONTEXT}"),
    "lmstudio": ContextSource("/api/v0/models", _of_lm_studio, f"lms load {{model}} --context-length {GOOD_CONTEXT}"),
}
"""By `Vendor.context_from`."""


def address(kind: str, base_url: str) -> str:
    """Return the URL to ask, on the host of the base URL."""
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc}{SOURCES[kind].path}"


def context_window(kind: str, model: str, body: bytes) -> int:
    """Return the size that a server's answer names, in tokens; 0 if it names none."""
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return 0
    return max(0, SOURCES[kind].tokens(answer, model))


def warning(kind: str, title: str, model: str, tokens: int) -> str | None:
    """Return a sentence about a context window that is too small; None if it is large enough or unknown."""
    if not 0 < tokens < MIN_CONTEXT:
        return None
    command = SOURCES[kind].advice.format(model=model)
    return (
        f"{title} has loaded {model} with a context of {tokens:,} tokens, in which the tools do not fit; "
        f"start it with a larger one: {command}"
    )


class AskedWindow(NamedTuple):
    """The context window that each request to Ollama asks for, in tokens, and a warning if the tools do not fit into it."""

    tokens: int
    warning: str | None


class _Description(msgspec.Struct):
    """Ollama's answer about an installed model."""

    model_info: dict[str, object]
    parameters: str = ""
    """Lines of the Modelfile, each a name and a value."""


_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)\s*$", re.MULTILINE)


def description_of(base_url: str) -> str:
    """Return the URL at which Ollama describes a model."""
    return f"{base_url.rstrip('/').removesuffix('/api')}/api/show"


def asked_window(title: str, model: str, wanted: int, body: bytes) -> AskedWindow | None:
    """Return what to ask for by the server's description of the model; None if that is none.

    The first of `wanted`, which is the user's setting or 0, the model's own `num_ctx` and `GOOD_CONTEXT`, but no more than
    the model was made for.
    """
    try:
        found = msgspec.json.decode(body, type=_Description)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    own = _NUM_CTX.search(found.parameters)
    configured = wanted or (int(own[1]) if own else 0)
    most = _made_for(found.model_info)
    tokens = min(configured or GOOD_CONTEXT, most or sys.maxsize)
    if tokens >= MIN_CONTEXT:
        return AskedWindow(tokens, None)
    if 0 < most < MIN_CONTEXT:
        reason = f"has a context of {most:,} tokens at most, in which the tools do not fit; choose another model"
    else:
        reason = (
            f"is used with a context of {tokens:,} tokens, as configured, in which the tools do not fit; "
            f"raise context_window in [[models]] to {GOOD_CONTEXT}"
        )
    return AskedWindow(tokens, f"{model} on {title} {reason}")


def _made_for(model_info: Mapping[str, object]) -> int:
    """Return the longest context that the model was trained for; 0 if the description does not say."""
    architecture = model_info.get("general.architecture")
    tokens = model_info.get(f"{architecture}.context_length")
    return tokens if isinstance(tokens, int) and tokens > 0 else 0
