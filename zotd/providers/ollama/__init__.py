"""Ollama's own API, `/api/chat`, over plain HTTP: unlike its imitation of OpenAI's, it takes the size of the context window.

Imported at first use only, because of the HTTP library.
"""

from zotd.providers.ollama.client import OllamaClient
from zotd.providers.shared import Destination


def make_client(destination: Destination) -> OllamaClient:
    """Return a client for one URL and key, with its own connections; the caller closes it."""
    return OllamaClient(destination)
