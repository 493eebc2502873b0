"""The Messages API through Anthropic's SDK.

The SDK's own types cost twice (request, 201 messages) to 13 times (each delta) as much as ours. Imported at first use
only: 1.4 s of CPU and 80 MB.
"""

import anthropic

from zotd.providers.anthropic.sdk import AnthropicSdk, http_client, timeout
from zotd.providers.shared import Destination
from zotd.providers.shared.conversation import SdkClient


def make_client(destination: Destination) -> SdkClient:
    """Return a client for one URL and key, with its own connections; the caller closes it."""
    http = http_client(destination)
    client = anthropic.AsyncAnthropic(
        base_url=destination.base_url,
        api_key=destination.api_key,
        max_retries=0,  # the session repeats requests itself, and shows that it does
        timeout=timeout(),
        http_client=http,
    )
    return SdkClient(AnthropicSdk(client, http))
