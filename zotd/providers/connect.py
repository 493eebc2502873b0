"""Opens models: checks what was chosen, loads the vendor's SDK when it is first needed, shares its connections."""

import asyncio
import gc
import importlib
import logging
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from functools import cached_property
from threading import Lock, Thread

from msgspec.structs import replace

from zotd.core.budget import Rates
from zotd.core.ports import ModelRequest
from zotd.core.reply import Part, ServerAdvice
from zotd.core.retry import Failure, ModelError
from zotd.providers.catalog import SMOL, Catalog
from zotd.providers.catalog.wishes import unmet
from zotd.providers.choice import OPENAIS, ModelChoice, destination, key_of, speaking_ollama, url_of
from zotd.providers.few_shot import shortened
from zotd.providers.local import LocalModels
from zotd.providers.narrowing import Narrowing
from zotd.providers.route import ModelFacts, Route
from zotd.providers.shared import NO_KEY, Access, Destination, Target, Vendor, VendorClient, VendorConversation
from zotd.providers.windows import ServerWindows
from zotd.wire.content import Tokens

log = logging.getLogger(__name__)

APIS: Mapping[str, str] = {
    "anthropic": "zotd.providers.anthropic",
    "ollama": "zotd.providers.ollama",
    "openai": "zotd.providers.openai.chat",
    "responses": "zotd.providers.openai.responses",
}
"""The modules that speak a model API, by the name that `Vendor.api` gives it; imported at first use."""

EXTRAS: Mapping[str, str] = {
    "bedrock": "zotd.providers.anthropic.bedrock",
    "vertex": "zotd.providers.anthropic.vertex",
}
"""Like `APIS`, for those whose packages are installed by an extra of that name; nothing loads them in advance."""

_MODULES = {**APIS, **EXTRAS}

CHECK_S = 8.0
"""How long a vendor may take to answer about a key; a user waits at a terminal."""

KEPT_ROUTES = 256
"""Most choices whose check is remembered; a home has a few models in use, each session with its own key one more."""

LOAD_DELAY_S = 0.1
"""From the moment when an SDK is likely to be needed to its import, which slows the event loop down: first the client
gets what it has asked for. A prompt does not wait for the delay."""

NEVER = 1_000_000
"""Collections of the middle generation before a full one; an import takes some hundred."""


class Providers:
    """Opens models and owns what they share: SDK clients with their connections, and the local server."""

    def __init__(self, catalog: Catalog, env: Mapping[str, str]) -> None:
        """`env`: the environment for the local server; any vendor's keys are taken out of it."""
        self._catalog = catalog
        secret = catalog.key_variables()
        self._local = LocalModels(SMOL, {name: value for name, value in env.items() if name not in secret})
        self._clients: dict[tuple[str, Destination], VendorClient] = {}
        self._routes: dict[ModelChoice, Route] = {}
        """By what was chosen: almost every run makes the choice of the one before it."""
        self._facts: dict[tuple[str, str], ModelFacts] = {}
        self.windows = ServerWindows()

    def connect(self, choice: ModelChoice, told: set[str] | None = None) -> "ModelConnection":
        """A model for one run; nothing is loaded and nothing is sent before its first `stream`.

        `told`: the notices that the user of the session has had about what its models do not take: see `Narrowing`.

        Raises:
            ModelError: there is no such provider, no key (`NO_KEY`), or the URL is none.
        """
        route = self._routes.get(choice)
        if route is None:
            route = self._checked(choice)
            if len(self._routes) >= KEPT_ROUTES:
                self._routes.clear()
            self._routes[choice] = route
        return ModelConnection(self, self._catalog, route, told)

    def _checked(self, choice: ModelChoice) -> Route:
        vendor = self._catalog.by_name.get(choice.provider)
        if vendor is None or vendor.api not in _MODULES:
            names = ", ".join(known.name for known in self._catalog.vendors() if known.api in _MODULES)
            if vendor is not None:
                sentence = f"zot does not speak the API of {vendor.title} yet; choose one of {names}"
                raise ModelError(Failure.REFUSED, sentence)
            raise ModelError(Failure.REFUSED, f"there is no provider {choice.provider}; choose one of {names}")
        if vendor.requires and (missing := vendor.missing_package):
            raise ModelError(Failure.UNAVAILABLE, f"{vendor.title} cannot be used yet: {missing}")
        if not choice.model:
            raise ModelError(Failure.REFUSED, f"no model is chosen for {vendor.title}; choose one with --model")
        vendor = self._speaking(vendor, choice)
        key, url = key_of(vendor, choice), url_of(vendor, choice)
        checked = ModelChoice(vendor.name, choice.model, key, url, access=choice.access, variables=choice.variables)
        has_own_window = bool(vendor.context_from or vendor.asks_for_context)
        if url is None or choice.access is not None:
            return Route(vendor, checked, None, has_own_window, {})
        return Route(vendor, checked, destination(vendor, url, key, choice.variables), has_own_window, {})

    def _speaking(self, vendor: Vendor, choice: ModelChoice) -> Vendor:
        """The vendor with the API in which this model is asked.

        A base URL other than the vendor's own gets Chat Completions, which every imitator has, unless `choice.api` says
        otherwise. At the vendor's own, a model that answers in one API only is asked in that one.
        """
        if vendor.api == "ollama":
            return speaking_ollama(vendor, choice)
        chosen = OPENAIS.get(choice.api or "")
        if vendor.api not in OPENAIS.values():
            if chosen is None:
                return vendor
            sentence = f"{vendor.title} has an API of its own; remove providers.{vendor.name}.api from config.toml"
            raise ModelError(Failure.REFUSED, sentence)
        if choice.base_url is not None and choice.base_url.rstrip("/") != vendor.base_url.rstrip("/"):
            api = chosen or OPENAIS["chat"]
        else:
            api = self._catalog.api_needed(vendor.name, choice.model) or chosen or vendor.api
        return vendor if api == vendor.api else replace(vendor, api=api)

    def unmet(self, choice: ModelChoice, reasoning: str, *, has_tools: bool) -> str | None:
        """What of these wishes the model does not fulfil, one sentence for the user; None: nothing is known."""
        vendor = self._catalog.by_name.get(choice.provider)
        if vendor is None:
            return None
        try:
            vendor = self._speaking(vendor, choice)
        except ModelError:
            return None  # told by the first request
        return unmet(vendor, self.facts(vendor.name, choice.model).info, reasoning, has_tools=has_tools)

    def facts(self, vendor: str, model: str) -> ModelFacts:
        """What the catalog knows of a model; looked up once for all runs."""
        found = self._facts.get((vendor, model))
        if found is None:
            info, rates = self._catalog.assumed(vendor, model), self._catalog.rates(vendor, model)
            found = ModelFacts(info, rates, self._catalog.flat_prices(vendor, model))
            self._facts[vendor, model] = found
        return found

    async def key_status(self, choice: ModelChoice) -> int:
        """The HTTP status with which the vendor answers a request with that key; the list of models costs nothing.

        Raises:
            ModelError: the provider is unknown, the URL is invalid, or there is no answer within `CHECK_S`.
        """
        vendor = self._catalog.by_name.get(choice.provider)
        if vendor is None or vendor.api not in _MODULES:
            raise ModelError(Failure.REFUSED, f"there is no provider {choice.provider} whose keys can be checked")
        vendor = self._speaking(vendor, choice)
        url, key = url_of(vendor, choice) or "", key_of(vendor, choice)
        # Not one of the shared: a key that was refused is not kept.
        await asyncio.to_thread(load, vendor.api)
        client = _make_client(vendor.api, destination(vendor, url, key, choice.variables))
        try:
            async with asyncio.timeout(CHECK_S):
                return await client.status(vendor)
        except TimeoutError as error:
            raise ModelError(Failure.UNREACHABLE, f"no answer within {CHECK_S:g} s") from error
        finally:
            await client.close()

    def warm(self, provider: str) -> None:
        """Load what the provider's first request will need, in a thread and after `LOAD_DELAY_S`; takes up to 2 s.

        Needs a running event loop.
        """
        vendor = self._catalog.by_name.get(provider)
        if vendor is not None and vendor.api in _MODULES and vendor.api not in _loaded:
            # Not `asyncio.to_thread`: a program that ends does not wait for a daemon thread.
            thread = Thread(target=_load_early, args=(vendor.api,), name=f"load-{vendor.api}", daemon=True)
            asyncio.get_running_loop().call_later(LOAD_DELAY_S, thread.start)

    async def close(self) -> None:
        """Close all connections and stop the local server; requests that still run fail."""
        clients = list(self._clients.values())
        self._clients.clear()
        try:
            for client in clients:
                await client.close()
        finally:
            await self._local.close()

    async def client(self, api: str, destination: Destination) -> VendorClient:
        """The SDK's client for that destination."""
        key = (api, destination)
        if key not in self._clients:
            if api not in _loaded:
                await asyncio.to_thread(load, api)  # would hold up every session for up to 2 s
            if key not in self._clients:  # another session may have been faster
                self._clients[key] = _make_client(*key)
        return self._clients[key]

    async def local(self, model: str) -> tuple[str, str]:
        """URL and key of the local server that runs `model`, started when none runs."""
        server = await self._local.server(model)
        return f"{server.url}/v1", server.key


class ModelConnection:
    """One model, opened for one run (`core.ports.Model`)."""

    def __init__(self, providers: Providers, catalog: Catalog, route: Route, told: set[str] | None) -> None:
        self._providers = providers
        self._catalog = catalog
        self._vendor, self._choice, self._fixed, self._has_own_window, self._refused = route
        self._told = told
        self._conversation: VendorConversation | None = None
        self._opened_url = ""
        self._looked = not self._has_own_window

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[Part], None]:
        """See `core.ports.Model.stream`."""
        has_begun = False
        chunks = self._sent(request) if self._narrowing is None else self._narrowing.stream(request, self._sent)
        try:
            async with aclosing(chunks):
                async for parts in chunks:
                    has_begun = True
                    yield parts
            return
        except ModelError as error:
            narrowing = Narrowing(self._facts.info, self._refused, self._told)
            if has_begun or self._narrowing is not None or not narrowing.learn(error, request):
                raise
        self._narrowing = narrowing
        again = narrowing.stream(request, self._sent)
        async with aclosing(again):
            async for parts in again:
                yield parts

    def _sent(self, request: ModelRequest) -> AsyncGenerator[Sequence[Part], None]:
        if self._facts.info.few_shot:
            request = shortened(request)
        access = self._choice.access
        return self._attempt(request) if access is None else self._with_login(request, access)

    async def _with_login(self, request: ModelRequest, access: Access) -> AsyncGenerator[Sequence[Part], None]:
        await access.prepare()
        sent, chunks = access.headers, self._attempt(request)
        async with aclosing(chunks):
            try:
                async for parts in chunks:
                    yield parts
                return
            except ModelError as error:
                if not error.refuses_key:
                    raise
        # The token was revoked, or ended earlier than this machine's clock says. No part of a reply has come yet.
        await access.renew(sent)
        again = self._attempt(request)
        async with aclosing(again):
            async for parts in again:
                yield parts

    async def _attempt(self, request: ModelRequest) -> AsyncGenerator[Sequence[Part], None]:
        conversation = await self._open()
        async with aclosing(conversation.stream(request)) as chunks:
            async for parts in chunks:
                yield parts
                # Not earlier: the server loads the model for the first request.
                if not self._looked and (warning := await self._look()):
                    yield [ServerAdvice(warning)]

    def price(self, tokens: Tokens) -> Tokens:
        """See `core.ports.Model.price`."""
        prices = self._facts.prices
        if prices is None:
            return self._catalog.price(self._vendor.name, self._choice.model, tokens)
        return replace(tokens, cost_usd=prices.usd(tokens))

    @property
    def rates(self) -> Rates | None:
        """See `core.ports.Model.rates`."""
        return self._facts.rates

    @property
    def context_window(self) -> int:
        """See `core.ports.Model.context_window`."""
        info = self._facts.info
        if not self._has_own_window:
            return info.context_window
        return self._providers.windows.size(self._vendor, self._choice.base_url or "", info)

    @cached_property
    def _facts(self) -> ModelFacts:
        return self._providers.facts(self._vendor.name, self._choice.model)

    async def _look(self) -> str | None:
        """Find out about the context window, once for each run; return a warning if it is too small."""
        self._looked = True
        url = self._opened_url
        client = await self._providers.client(self._vendor.api, self._destination(url, self._choice.api_key or NO_KEY))
        return await self._providers.windows.look(self._vendor, url, self._choice.model, client)

    def _destination(self, base_url: str, api_key: str) -> Destination:
        return destination(self._vendor, base_url, api_key, self._choice.variables)

    @cached_property
    def _narrowing(self) -> Narrowing | None:
        info = self._facts.info
        is_needed = info.tools is False or info.images is False or self._refused
        return Narrowing(info, self._refused, self._told) if is_needed else None

    async def _open(self) -> VendorConversation:
        """The conversation; a new one, which has encoded nothing yet, when the local server had to be started anew."""
        access = self._choice.access
        place = self._fixed or await self._found_destination(access)
        windows, vendor, model = self._providers.windows, self._vendor, self._facts.info
        is_settled = not self._has_own_window or windows.is_settled(vendor, place.base_url, model.id)
        conversation = self._conversation
        if conversation is None or place.base_url != self._opened_url or not is_settled:
            client = await self._providers.client(vendor.api, place)
            if self._has_own_window and vendor.asks_for_context:
                model = await windows.settled(vendor, place.base_url, model, client)
            conversation = self._conversation = client.open(Target(vendor, place.base_url, model, access))
            self._opened_url = place.base_url
        return conversation

    async def _found_destination(self, access: Access | None) -> Destination:
        if access is None:
            return self._destination(*await self._providers.local(self._choice.model))
        base_url = self._choice.base_url or ""
        if base_url == self._vendor.base_url:
            base_url = access.base_url or base_url
        # A client of its own: it keeps the headers of its first request.
        return self._destination(base_url, f"login:{self._vendor.name}")


_loaded: set[str] = set()
"""APIs whose modules are loaded. Module state, as modules are."""

_loading = Lock()


def load(api: str) -> None:
    """Load the SDK of an API and what its requests share; takes up to 2 s the first time. Call it in a thread."""
    with _loading:
        if api in _loaded:
            return
        with _without_full_collections():
            Catalog.preload()
            importlib.import_module(_MODULES[api])
            importlib.import_module("zotd.providers.shared.http").tls_context()
            # What an SDK defines stays for good. Looked through again and again, it makes each full collection hold the
            # event loop for 100 to 130 ms. Once only: a freeze also keeps for good what is garbage at that moment.
            gc.freeze()
        _loaded.add(api)


@contextmanager
def _without_full_collections() -> Iterator[None]:
    """Have the garbage collector look at young objects only.

    While an SDK is imported, two or three full collections would each hold the event loop for 15 to 95 ms, and find next
    to nothing: imported objects stay. The young ones must still be looked at, because garbage would be frozen, too.
    """
    before = gc.get_threshold()
    gc.set_threshold(*before[:2], NEVER)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _load_early(api: str) -> None:
    try:
        load(api)
    except Exception as error:  # noqa: BLE001  (any import can fail while the interpreter ends)
        log.debug("early import failed: %s", error)  # the first request imports again, and reports it


def _make_client(api: str, destination: Destination) -> VendorClient:
    client: VendorClient = importlib.import_module(_MODULES[api]).make_client(destination)
    return client
