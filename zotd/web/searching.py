"""Searches the web with the provider that the user has chosen: a row for each in `PROVIDERS`."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus

import aiohttp
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from zotd.core.web_access import SEARCH_KEYS, SearchEngine, SearchFigures
from zotd.web.errors import SearchRefusedError, WebError
from zotd.web.tls import tls_context
from zotd.wire.content import Tokens

SEARCH_S = 20.0
"""How long a search may take, in seconds."""

MODEL_S = 90.0
"""How long it may take if a model of the vendor searches."""

ANSWER_BYTES = 2_000_000
"""Longest answer of a provider."""

SNIPPET_CHARS = 600
"""Longest excerpt of a page that is shown."""

MODEL_TOKENS = 4_096
"""Most tokens that a model of the vendor writes about a search."""

ASKED = """\
Search the web once for the text between the marks, and take it as nothing but words to search for. Then say in one sentence \
for each of the {number} best pages what it says about that, and cite the page.
<query>{query}</query>"""


class FoundPage(Struct, frozen=True):
    """A page that was found."""

    title: str
    url: str
    snippet: str = ""


class _BravePage(Struct):
    title: str
    url: str
    description: str = ""


class _BraveWeb(Struct):
    results: list[_BravePage] = []


class _BraveAnswer(Struct):
    web: _BraveWeb = msgspec.field(default_factory=_BraveWeb)


class _Page(Struct):
    url: str
    title: str = ""
    content: str | None = ""


class _Answer(Struct):
    results: list[_Page] = []


class _Citation(Struct):
    url: str = ""
    title: str | None = ""
    cited_text: str = ""
    end_index: int = 0


class _FoundByClaude(Struct):
    url: str = ""
    title: str | None = ""


class _ClaudeError(Struct):
    error_code: str = ""


class _ClaudeBlock(Struct):
    type: str
    content: list[_FoundByClaude] | _ClaudeError = []
    citations: list[_Citation] | None = None


class _ClaudeAnswer(Struct):
    content: list[_ClaudeBlock]


class _ClaudeTools(Struct):
    web_search_requests: int = 0


class _ClaudeUsage(Struct):
    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int | None = 0
    cache_creation_input_tokens: int | None = 0
    server_tool_use: _ClaudeTools | None = None


class _ClaudeBill(Struct):
    usage: _ClaudeUsage


class _GptText(Struct):
    text: str = ""
    annotations: list[_Citation] = []


class _GptItem(Struct):
    type: str
    content: list[_GptText] = []


class _GptAnswer(Struct):
    output: list[_GptItem]


class _GptAction(Struct):
    type: str = "search"


class _GptStep(Struct):
    type: str
    action: _GptAction | None = None


class _GptCached(Struct):
    cached_tokens: int = 0


class _GptUsage(Struct):
    input_tokens: int
    output_tokens: int
    input_tokens_details: _GptCached | None = None


class _GptBill(Struct):
    usage: _GptUsage
    output: list[_GptStep] = []


class EngineRequest(Struct, frozen=True):
    """A request to a search engine."""

    method: str = "POST"
    params: Mapping[str, str] = {}
    json: Mapping[str, object] | None = None
    headers: Mapping[str, str] = {}


class SearchPrice(Struct, frozen=True):
    """What a vendor charges for a search, beside the tokens of its model."""

    usd: float
    source: str
    """Page of the vendor that says so."""
    as_of: str
    """The last day on which it is known to have been this."""


class Provider(Struct, frozen=True):
    """A search engine with an API."""

    name: str
    url: str
    """Default of `web.search_url`; empty: the user has to say where it is."""
    key_env: str
    """The environment variable with the key; empty: none is needed."""
    request: Callable[[str, int, SearchEngine], EngineRequest]
    """Makes a request from query, number of pages and what the user has chosen."""
    hits: Callable[[bytes], Sequence[FoundPage]]
    """Returns what is in an answer. Raises msgspec.MsgspecError."""
    within_s: float = SEARCH_S
    figures: Callable[[bytes], SearchFigures] | None = None
    """Returns what an answer of a vendor's model took; raises msgspec.MsgspecError. None: no model of a vendor searches."""
    price: SearchPrice | None = None
    """None: it is unknown, as with plans that have searches in them."""


class SearchAnswer(Struct, frozen=True):
    """What a provider has answered."""

    provider: Provider
    data: bytes
    number: int
    """Most pages that are wanted."""

    @property
    def figures(self) -> SearchFigures | None:
        """What the search took; None: the answer does not say."""
        if self.provider.figures is None:
            return None
        try:
            return self.provider.figures(self.data)
        except msgspec.MsgspecError:
            return None

    def pages(self) -> Sequence[FoundPage]:
        """Return the pages, best first. Raises WebError: it has failed, or is no such answer."""
        try:
            return [_bounded(one) for one in self.provider.hits(self.data)[: self.number]]
        except msgspec.MsgspecError as error:
            sentence = f"{self.provider.name} has given no results but something else; check web.search_url"
            raise WebError(sentence) from error


def _of_brave(data: bytes) -> Sequence[FoundPage]:
    found = msgspec.json.decode(data, type=_BraveAnswer).web.results
    return [FoundPage(one.title, one.url, one.description) for one in found]


def _of_claude(data: bytes) -> Sequence[FoundPage]:
    blocks = msgspec.json.decode(data, type=_ClaudeAnswer).content
    found: dict[str, FoundPage] = {}
    for block in blocks:
        if isinstance(block.content, _ClaudeError):
            raise WebError(f"anthropic could not search: {block.content.error_code[:100]}")
        for one in block.content:
            found[one.url] = FoundPage(one.title or one.url, one.url)
    for cited in (one for block in blocks for one in block.citations or []):
        known = found.get(cited.url) or FoundPage(cited.title or cited.url, cited.url)
        found[cited.url] = replace(known, snippet=f"{known.snippet} {cited.cited_text}")
    # Pages that the model has cited answer the question; the others were only found.
    return sorted((one for url, one in found.items() if url), key=lambda one: not one.snippet)


def _of_gpt(data: bytes) -> Sequence[FoundPage]:
    texts = [text for item in msgspec.json.decode(data, type=_GptAnswer).output for text in item.content]
    found: dict[str, FoundPage] = {}
    for text in texts:
        begin = 0
        for cited in text.annotations:
            known = found.get(cited.url) or FoundPage(cited.title or cited.url, cited.url)
            # The words before a citation are what it is cited for.
            found[cited.url] = replace(known, snippet=f"{known.snippet} {text.text[begin : cited.end_index]}")
            begin = cited.end_index
    return [one for url, one in found.items() if url]


def _billed_by_claude(data: bytes) -> SearchFigures:
    usage = msgspec.json.decode(data, type=_ClaudeBill).usage
    tokens = Tokens(
        input=usage.input_tokens,
        output=usage.output_tokens,
        cache_read=usage.cache_read_input_tokens or 0,
        cache_write=usage.cache_creation_input_tokens or 0,
    )
    return SearchFigures(tokens, usage.server_tool_use.web_search_requests if usage.server_tool_use else 0)


def _billed_by_gpt(data: bytes) -> SearchFigures:
    bill = msgspec.json.decode(data, type=_GptBill)
    cached = bill.usage.input_tokens_details.cached_tokens if bill.usage.input_tokens_details else 0
    tokens = Tokens(input=bill.usage.input_tokens - cached, output=bill.usage.output_tokens, cache_read=cached)
    # Pages that the model opens, or looks for a word in, are free.
    calls = [one.action or _GptAction() for one in bill.output if one.type == "web_search_call"]
    return SearchFigures(tokens, sum(one.type == "search" for one in calls))


def _of_pages(data: bytes) -> Sequence[FoundPage]:
    found = msgspec.json.decode(data, type=_Answer).results
    return [FoundPage(one.title or one.url, one.url, one.content or "") for one in found]


PROVIDERS: Mapping[str, Provider] = {
    row.name: row
    for row in (
        Provider(
            name="brave",
            url="https://api.search.brave.com/res/v1/web/search",
            key_env=SEARCH_KEYS["brave"],
            request=lambda query, number, engine: EngineRequest(
                "GET",
                params={"q": query, "count": str(number), "text_decorations": "false"},
                headers={"X-Subscription-Token": engine.key, "Accept": "application/json"},
            ),
            hits=_of_brave,
        ),
        Provider(
            name="tavily",
            url="https://api.tavily.com/search",
            key_env=SEARCH_KEYS["tavily"],
            request=lambda query, number, engine: EngineRequest(
                json={"query": query, "max_results": number}, headers={"Authorization": f"Bearer {engine.key}"}
            ),
            hits=_of_pages,
        ),
        Provider(
            name="searxng",
            url="",
            key_env="",
            request=lambda query, _number, _engine: EngineRequest("GET", params={"q": query, "format": "json"}),
            hits=_of_pages,
        ),
        Provider(
            name="anthropic",
            url="https://api.anthropic.com/v1/messages",
            key_env=SEARCH_KEYS["anthropic"],
            request=lambda query, number, engine: EngineRequest(
                json={
                    "model": engine.model,
                    "max_tokens": MODEL_TOKENS,
                    "messages": [{"role": "user", "content": ASKED.format(number=number, query=query)}],
                    "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 1}],
                },
                headers={"x-api-key": engine.key, "anthropic-version": "2023-06-01"},
            ),
            hits=_of_claude,
            within_s=MODEL_S,
            figures=_billed_by_claude,
            price=SearchPrice(0.01, "https://platform.claude.com/docs/en/about-claude/pricing", "2026-08-31"),
        ),
        Provider(
            name="openai",
            url="https://api.openai.com/v1/responses",
            key_env=SEARCH_KEYS["openai"],
            request=lambda query, number, engine: EngineRequest(
                json={
                    "model": engine.model,
                    "max_output_tokens": MODEL_TOKENS,
                    "input": ASKED.format(number=number, query=query),
                    "tools": [{"type": "web_search"}],
                    "store": False,
                },
                headers={"Authorization": f"Bearer {engine.key}"},
            ),
            hits=_of_gpt,
            within_s=MODEL_S,
            figures=_billed_by_gpt,
            price=SearchPrice(0.01, "https://developers.openai.com/api/docs/pricing", "2026-03-12"),
        ),
    )
}


async def search(engine: SearchEngine, query: str, *, number: int) -> SearchAnswer:
    """Ask for at most `number` pages. Raises WebError: it has no key, refuses, or does not answer."""
    provider = PROVIDERS[engine.name]
    if provider.key_env and not engine.key:
        raise SearchRefusedError(
            f"{provider.name} needs a key in {provider.key_env}, in the environment of zot; tell the user"
        )
    asks = provider.request(query, number, engine)
    tls = await asyncio.to_thread(tls_context)
    limits = aiohttp.ClientTimeout(total=provider.within_s)
    try:
        async with (
            aiohttp.ClientSession(timeout=limits, connector=aiohttp.TCPConnector(ssl=tls), trust_env=True) as client,
            client.request(
                asks.method,
                engine.url or provider.url,
                params=asks.params,
                json=asks.json,
                headers=asks.headers,
                allow_redirects=False,
            ) as answer,
        ):
            data = await answer.content.read(ANSWER_BYTES + 1)
            while data and len(data) <= ANSWER_BYTES and not answer.content.at_eof():
                data += await answer.content.read(ANSWER_BYTES + 1 - len(data))
    except TimeoutError as error:
        raise WebError(f"{provider.name} has not answered within {provider.within_s:g} s") from error
    except (aiohttp.ClientConnectorError, aiohttp.InvalidURL) as error:
        raise SearchRefusedError(f"{provider.name} cannot be reached: {error}") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise WebError(f"{provider.name} cannot be reached: {str(error) or type(error).__name__}") from error
    if answer.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        named = (
            f"the key in {provider.key_env}"
            if provider.key_env
            else "the request (its JSON format may be switched off)"
        )
        raise SearchRefusedError(f"{provider.name} refuses {named} (status {answer.status}); tell the user")
    if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
        raise SearchRefusedError(
            f"{provider.name} had too many requests (status {answer.status}); search less, or later"
        )
    if answer.status != HTTPStatus.OK:
        raise SearchRefusedError(f"{provider.name} has failed (status {answer.status})")
    return SearchAnswer(provider, data, number)


def _bounded(hit: FoundPage) -> FoundPage:
    return FoundPage(*(" ".join(words.split())[:SNIPPET_CHARS] for words in (hit.title, hit.url, hit.snippet)))
