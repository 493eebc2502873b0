"""A scripted model, and agents that ask it."""

from contextlib import AsyncExitStack

import pytest

from zot import Agent
from zotd.testing.live_daemon import place as place_in
from zotd.testing.model_server import ModelServer


@pytest.fixture
def place(tmp_path):
    """A home and a working directory."""
    return place_in(tmp_path)


@pytest.fixture
async def model():
    """`await model(answer, ...)`: a scripted model that is served until the end of the test."""
    async with AsyncExitStack() as stack:

        async def model(*answers):
            return await stack.enter_async_context(ModelServer(answers))

        yield model


@pytest.fixture
def agent(place):
    """`agent(server, **options)`: an agent that asks this server."""

    def agent(server, **options):
        common = {"provider": "openai", "base_url": server.openai_url, "api_key": "sk-x"}
        return Agent(**{**common, "cwd": place.cwd, "env": place.env, **options})

    return agent
