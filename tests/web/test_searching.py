"""Searching the web, against a server that speaks like each provider."""

import asyncio
from datetime import date

import msgspec
import pytest
from aiohttp import web

from zotd.core.web_access import SearchEngine
from zotd.testing.http_site import listening
from zotd.web import searching
from zotd.web.errors import WebError
from zotd.web.searching import PROVIDERS, FoundPage, SearchAnswer, search

PAGE = {"title": "A  page", "url": "https://example.org/a", "description": "about\n it", "content": "about\n it"}

CITED = {"url": "https://example.org/a", "title": "A  page"}

ANSWERS = {
    "anthropic": {
        "content": [
            {"type": "text", "text": "I search."},
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "what is it"}},
            {
                "type": "web_search_tool_result",
                "tool_use_id": "s1",
                "content": [
                    {
                        "type": "web_search_result",
                        "url": "https://example.org/b",
                        "title": "B",
                        "encrypted_content": "x",
                    },
                    {"type": "web_search_result", **CITED, "encrypted_content": "x"},
                ],
            },
            {"type": "text", "text": "It is.", "citations": [{**CITED, "cited_text": "about\n it"}]},
        ]
    },
    "openai": {
        "output": [
            {"type": "web_search_call", "id": "w1", "status": "completed"},
            {
                "type": "message",
                "content": [
                    {
                        "type": "output_text",
                        "text": "about\n it, and more",
                        "annotations": [{"type": "url_citation", **CITED, "start_index": 0, "end_index": 9}],
                    }
                ],
            },
        ]
    },
    "brave": {"web": {"results": [PAGE, PAGE]}},
    "tavily": {"results": [PAGE, PAGE]},
    "searxng": {"results": [PAGE, PAGE]},
}


@pytest.fixture
async def engine():
    """`await engine(handler)`: a server at which everything is answered by this handler; its URL."""
    runners = []

    async def engine(handler):
        app = web.Application()
        app.router.add_route("*", "/search", handler)
        runners.append(web.AppRunner(app, handler_cancellation=True))
        return f"{await listening(runners[-1])}/search"

    yield engine
    for runner in runners:
        await runner.cleanup()


@pytest.mark.parametrize("name", PROVIDERS)
async def test_each_provider_is_asked_in_its_own_way_and_its_hits_have_one_form(engine, name):
    asked: dict[str, str] = {}
    keys: list[str] = []

    async def answer(request):
        asked.update(request.query, method=request.method, body=await request.text())
        keys.extend(filter(None, map(request.headers.get, ("X-Subscription-Token", "x-api-key", "Authorization"))))
        return web.json_response(ANSWERS[name])

    answered = await search(SearchEngine(name, await engine(answer), "k-1", "m-1"), "what is it", number=1)
    found = answered.pages()
    assert found == [FoundPage("A page", "https://example.org/a", "about it")]
    assert "what is it" in (asked["body"] if asked["method"] == "POST" else asked["q"])
    assert keys == {"brave": ["k-1"], "searxng": [], "anthropic": ["k-1"]}.get(name, ["Bearer k-1"])


FAILURES = {
    401: "brave refuses the key in BRAVE_API_KEY (status 401)",
    403: "brave refuses the key in BRAVE_API_KEY (status 403)",
    429: "too many requests",
    500: "brave has failed (status 500)",
    302: "brave has failed (status 302)",
}


@pytest.mark.parametrize("status", FAILURES)
async def test_a_refusal_is_a_sentence_without_the_key(engine, status):
    async def answer(request):
        return web.Response(status=status, headers={"Location": "http://169.254.169.254/"})

    with pytest.raises(WebError) as refused:
        await search(SearchEngine("brave", await engine(answer), "k-secret"), "q", number=5)
    assert FAILURES[status] in str(refused.value)
    assert "k-secret" not in str(refused.value)


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'{"results": [{"title": 1}]}', b'{"results": 3}', b"x" * 3_000_000]
)
async def test_an_answer_that_is_none_is_a_sentence(engine, body):
    async def answer(request):
        return web.Response(body=body)

    with pytest.raises(WebError, match="something else"):
        (await search(SearchEngine("tavily", await engine(answer), "k"), "q", number=5)).pages()


async def test_a_search_that_the_vendor_could_not_make_is_a_sentence(engine):
    async def answer(request):
        error = {"type": "web_search_tool_result_error", "error_code": "too_many_requests"}
        return web.json_response({"content": [{"type": "web_search_tool_result", "content": error}]})

    with pytest.raises(WebError, match="anthropic could not search: too_many_requests"):
        (await search(SearchEngine("anthropic", await engine(answer), "k", "m"), "q", number=5)).pages()


async def test_a_provider_that_hangs_is_given_up(engine, monkeypatch):
    hurried = msgspec.structs.replace(PROVIDERS["searxng"], within_s=0.2)
    monkeypatch.setitem(PROVIDERS, "searxng", hurried)

    async def hang(request):
        await asyncio.Event().wait()

    with pytest.raises(WebError, match=r"has not answered within 0\.2 s"):
        await search(SearchEngine("searxng", await engine(hang), ""), "q", number=5)


async def test_a_provider_that_is_away_is_a_sentence():
    with pytest.raises(WebError, match="searxng cannot be reached"):
        await search(SearchEngine("searxng", "http://127.0.0.1:9/search", ""), "q", number=5)


async def test_long_texts_are_cut(engine):
    async def answer(request):
        return web.json_response({"results": [{**PAGE, "content": "x" * 10_000}]})

    (hit,) = (await search(SearchEngine("searxng", await engine(answer), ""), "q", number=5)).pages()
    assert len(hit.snippet) == searching.SNIPPET_CHARS


async def test_a_provider_without_its_key_is_not_asked():
    with pytest.raises(WebError, match="tavily needs a key in TAVILY_API_KEY"):
        await search(SearchEngine("tavily", "http://127.0.0.1:9/", ""), "q", number=5)


def test_each_price_of_a_search_says_where_and_when_it_was_found():
    priced = {row.name: row.price for row in PROVIDERS.values() if row.figures is not None}
    assert sorted(priced) == ["anthropic", "openai"]
    for price in priced.values():
        assert price is not None
        assert price.usd > 0
        assert price.source.startswith("https://")
        assert date.fromisoformat(price.as_of)


@pytest.mark.parametrize("name", ["anthropic", "openai"])
@pytest.mark.parametrize("data", [b"", b"{}", b'{"usage": null}', b'{"usage": {"input_tokens": "many"}}'])
def test_an_answer_without_figures_has_none(name, data):
    assert SearchAnswer(PROVIDERS[name], data, 5).figures is None
