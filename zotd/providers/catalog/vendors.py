"""The vendors, as data: another one that imitates OpenAI is one more row here, or in the user's `models.json`."""

from zotd.providers.shared import Vendor

VENDORS = (
    Vendor(
        name="anthropic",
        label="Anthropic",
        api="anthropic",
        base_url="https://api.anthropic.com",
        key_env=("ANTHROPIC_API_KEY",),
        default_model="claude-sonnet-5-5",
        prices="anthropic",
    ),
    Vendor(
        name="openai",
        label="OpenAI",
        api="responses",
        base_url="https://api.openai.com/v1",
        key_env=("OPENAI_API_KEY",),
        default_model="gpt-5.6-sol",
        prices="openai",
        max_tokens_field="max_completion_tokens",
        reasoning_style="effort",
    ),
    Vendor(
        name="moonshot",
        label="Moonshot",
        base_url="https://api.moonshot.ai/v1",
        key_env=("MOONSHOT_API_KEY", "KIMI_API_KEY"),
        default_model="kimi-k3",
        aliases=("kimi",),
        prices="moonshotai",
        echo_reasoning=True,
    ),
    Vendor(
        name="deepseek",
        label="DeepSeek",
        base_url="https://api.deepseek.com",
        key_env=("DEEPSEEK_API_KEY",),
        default_model="deepseek-v4-pro",
        prices="deepseek",
        echo_reasoning=True,
    ),
    Vendor(
        name="openrouter",
        label="OpenRouter",
        base_url="https://openrouter.ai/api/v1",
        key_env=("OPENROUTER_API_KEY",),
        default_model="anthropic/claude-sonnet-5.5",
        prices="openrouter",
        reasoning_style="object",
    ),
    Vendor(
        name="groq",
        label="Groq",
        base_url="https://api.groq.com/openai/v1",
        key_env=("GROQ_API_KEY",),
        default_model="openai/gpt-oss-120b",
        prices="groq",
        reasoning_style="effort",
    ),
    Vendor(
        name="mistral",
        label="Mistral",
        base_url="https://api.mistral.ai/v1",
        key_env=("MISTRAL_API_KEY",),
        default_model="mistral-medium-3-5",
        prices="mistral",
        stream_options=False,  # counts tokens unasked, and refuses fields that it does not know
        short_call_ids=True,
    ),
    Vendor(
        name="xai",
        label="xAI",
        base_url="https://api.x.ai/v1",
        key_env=("XAI_API_KEY",),
        default_model="grok-4.7",
        aliases=("grok",),
        prices="x-ai",
    ),
    Vendor(
        name="together",
        label="Together",
        base_url="https://api.together.xyz/v1",
        key_env=("TOGETHER_API_KEY",),
        default_model="moonshotai/Kimi-K3",
        prices="together",
    ),
    # Subscriptions: `zotd.logins` has how to log in to them. Their requests cost nothing, so they have no prices.
    Vendor(
        name="copilot",
        label="GitHub Copilot",
        base_url="https://api.githubcopilot.com",
        default_model="gpt-4.1",
    ),
    Vendor(
        name="kimi-code",
        label="Kimi Code",
        base_url="https://api.kimi.com/coding/v1",
        default_model="kimi-for-coding",
        echo_reasoning=True,
    ),
    Vendor(
        name="chatgpt",
        label="ChatGPT",
        api="responses",
        base_url="https://chatgpt.com/backend-api/codex",
        default_model="gpt-5.6-sol",
    ),
    Vendor(name="ollama", label="Ollama", base_url="http://127.0.0.1:11434/v1", default_model="qwen3"),
    Vendor(
        name="llamacpp",
        label="llama.cpp",
        base_url="http://127.0.0.1:8080/v1",
        default_model="default",
        keep_alive=False,
    ),
    Vendor(
        name="local",
        label="The local model",
        base_url="http://127.0.0.1",  # with the port that its server, our child, finds free
        default_model="smollm2-135m",
        keep_alive=False,
        extra={"temperature": 0},  # a model this small strays at any other
    ),
)
"""Names are unique, aliases too. The default models stand in the data of `genai-prices`."""
