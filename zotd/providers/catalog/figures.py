"""What `genai-prices` does not know of a model: the tokens it may write, whether it reasons, whether it chats at all."""

import re

UNKNOWN_OUTPUT = 8192
"""`max_output` of a model that no rule knows."""

_RULES = tuple(
    (re.compile(pattern), max_output, reasoning)
    for pattern, max_output, reasoning in (
        (r"claude-(2|v|instant|3-(haiku|opus|sonnet))", 4096, False),
        (r"claude-3-5", 8192, False),
        (r"claude-opus-4-([01]\b|\d{8})", 32_000, True),
        (r"claude-opus-4-[6-9]", 128_000, True),
        (r"claude-", 64_000, True),
        (r"gpt-[56][\d-]*chat", 16_384, False),
        (r"gpt-[56]", 128_000, True),
        (r"codex", 100_000, True),
        (r"o[134]\b", 100_000, True),
        (r"gpt-4-1", 32_768, False),
        (r"gpt-4o|chatgpt-4o", 16_384, False),
        (r"gpt-4-turbo|gpt-3", 4096, False),
        (r"gpt-oss", 32_768, True),
        (r"deepseek-(reasoner|r1|v4|flash)|kimi-(k2-thinking|k3)|.*-thinking|magistral|qwq", 32_768, True),
        (r"gemini-(2-5|[3-9])", 65_536, True),
        (r"grok-(3-mini|4|build)(?!.*non-reasoning)", 32_768, True),
    )
)
"""The first that matches wins. The ids are matched without a vendor's prefix, with `-` for `.`."""

_VENDOR_PREFIX = re.compile(r"^(?:[a-z]+\.)+")
"""Of Bedrock: `us.anthropic.claude-…`."""

_OTHER_TRADES = re.compile(
    r"embed|whisper|tts|image|audio|realtime|moderation|transcribe|ocr|guard|voice|voxtral|live|orpheus|search"
    r"|deep-research|computer-use|rosalind|cyber|^(ada|babbage|curie|davinci|text-davinci)|^ft:|[.:](ft-|extended)",
    re.IGNORECASE,
)
"""Models that the price list has and no agent can use."""


_IN_RESPONSES_ONLY = re.compile(r"(gpt-[\d.]+|o\d)-(pro|codex)|codex")
"""Models of OpenAI that answer in its Responses API only."""


_REASONS_WITHOUT_TOOLS = re.compile(r"gpt-(5\.[2-9]|[6-9])")
"""OpenAI's models that take tools in Chat Completions only when told not to reason (else 400, "use /v1/responses")."""


def figures(model: str) -> tuple[int, bool]:
    """The most tokens that the model writes, and whether it can be told to reason."""
    name = _VENDOR_PREFIX.sub("", model.rsplit("/", 1)[-1].lower()).replace(".", "-")
    for pattern, max_output, reasoning in _RULES:
        if pattern.match(name):
            return max_output, reasoning
    return UNKNOWN_OUTPUT, False


def needs_responses(model: str) -> bool:
    """Whether OpenAI serves the model in its Responses API only."""
    return _IN_RESPONSES_ONLY.match(model) is not None


def reasons_without_tools(model: str) -> bool:
    """Whether the model either reasons or gets tools, but in OpenAI's Responses API."""
    return _REASONS_WITHOUT_TOOLS.match(model) is not None


def chats(model: str) -> bool:
    """Whether the model is one to talk to, as far as its id tells."""
    return not _OTHER_TRADES.search(model)
