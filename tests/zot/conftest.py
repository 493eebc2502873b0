"""A scripted model, and agents that ask it."""

import pytest

from tests.embed.conftest import model, place  # noqa: F401  (fixtures)
from zot import Agent


@pytest.fixture
def agent(place):  # noqa: F811
    """`agent(server, **options)`: an agent that asks this server."""

    def agent(server, **options):
        common = {"provider": "openai", "base_url": server.openai_url, "api_key": "sk-x"}
        return Agent(**{**common, "cwd": place.cwd, "env": place.env, **options})

    return agent
