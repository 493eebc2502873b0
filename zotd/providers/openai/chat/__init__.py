"""The Chat Completions API, as OpenAI and the many who imitate it serve it."""

from zotd.providers.openai.chat.reply import ReplyReader
from zotd.providers.openai.chat.request import RequestWriter
from zotd.providers.openai.sdk import OpenAiApi, OpenAiSdk
from zotd.providers.shared import Destination
from zotd.providers.shared.conversation import SdkClient


def make_client(destination: Destination) -> SdkClient:
    """Return a client for one URL and key, with its own connections; the caller closes it."""
    api = OpenAiApi("/chat/completions", RequestWriter, ReplyReader)
    return SdkClient(OpenAiSdk(api, destination))
