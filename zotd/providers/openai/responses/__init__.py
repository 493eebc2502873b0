"""The Responses API: OpenAI's models with their reasoning and tools together."""

from functools import partial

from zotd.providers.openai.responses.reply import ReplyReader
from zotd.providers.openai.responses.request import RequestWriter
from zotd.providers.openai.sdk import OpenAiApi, OpenAiSdk
from zotd.providers.shared import Destination
from zotd.providers.shared.conversation import SdkClient


def make_client(destination: Destination) -> SdkClient:
    """Return a client for one URL and key, with its own connections; the caller closes it."""
    refused: set[str] = set()  # with this key
    api = OpenAiApi("/responses", partial(RequestWriter, refused=refused), ReplyReader)
    return SdkClient(OpenAiSdk(api, destination))
