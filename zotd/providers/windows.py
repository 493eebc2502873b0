"""How large the context windows of the user's servers are: what they have loaded, and what Ollama is asked for."""

import asyncio

import msgspec

from zotd.providers import served
from zotd.providers.shared import Vendor, VendorClient
from zotd.wire.api import ModelInfo

LOOK_S = 2.0
"""How long a server may take to say how large a context window is; the reply waits for it."""

ASK_S = 10.0
"""How long Ollama may take to describe a model, for which it reads the file; loading it takes longer."""


class ServerWindows:
    """The context windows of the user's servers, by URL and model, as they were seen or asked for last."""

    def __init__(self) -> None:
        self._tokens: dict[tuple[str, str], int] = {}
        self._warnings: dict[tuple[str, str], str | None] = {}
        """Of those that are asked for."""

    def size(self, vendor: Vendor, base_url: str, model: ModelInfo) -> int:
        """The context window in tokens; before the first request what is to be expected; 0: unknown."""
        seen = self._tokens.get((base_url, model.id), 0)
        return seen or model.context_window or (served.GOOD_CONTEXT if vendor.asks_for_context else 0)

    def is_settled(self, vendor: Vendor, base_url: str, model: str) -> bool:
        """Whether it is known what all requests ask for, or they ask for nothing."""
        return not vendor.asks_for_context or (base_url, model) in self._tokens

    async def settled(self, vendor: Vendor, base_url: str, model: ModelInfo, client: VendorClient) -> ModelInfo:
        """The model with the context window that its requests ask for.

        The server is asked about the model until it has answered once; until then the size is the expected one.
        """
        if not self.is_settled(vendor, base_url, model.id):
            await self._ask(vendor, base_url, model, client)
        return msgspec.structs.replace(model, context_window=self.size(vendor, base_url, model))

    async def look(self, vendor: Vendor, base_url: str, model: str, client: VendorClient) -> str | None:
        """Ask a server how large the window of a model is that it has loaded; return a warning if it is too small."""
        if vendor.asks_for_context:
            return self._warnings.get((base_url, model))
        try:
            async with asyncio.timeout(LOOK_S):
                body = await client.look(served.address(vendor.context_from, base_url), served.REPLY_BYTES)
        except TimeoutError:
            return None
        tokens = served.context_window(vendor.context_from, model, body)
        if tokens:
            self._tokens[base_url, model] = tokens
        return served.warning(vendor.context_from, vendor.title, model, tokens)

    async def _ask(self, vendor: Vendor, base_url: str, model: ModelInfo, client: VendorClient) -> None:
        url, question = served.description_of(base_url), msgspec.json.encode({"model": model.id})
        try:
            async with asyncio.timeout(ASK_S):
                body = await client.look(url, served.REPLY_BYTES, question)
        except TimeoutError:
            return
        window = served.asked_window(vendor.title, model.id, model.context_window, body)
        if window is not None:
            self._tokens[base_url, model.id] = window.tokens
            self._warnings[base_url, model.id] = window.warning
