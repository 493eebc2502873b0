"""The device flow with a real server; pauses between polls are recorded instead of waited for."""

import time

import pytest

from zotd.oauth.device import DeviceLogin
from zotd.oauth.protocol import HttpAnswer, OAuthError, Problem


class Pauses:
    """Stands for the pauses: calls `then` after a number of them."""

    def __init__(self, server):
        self.server = server
        self.waited: list[float] = []
        self.then: dict[int, str] = {}
        """What the user does after so many pauses."""

    async def __call__(self, seconds):
        self.waited.append(seconds)
        if what := self.then.get(len(self.waited)):
            self.server.enter(next(iter(self.server.devices)), what)


@pytest.fixture
def pauses(server):
    return Pauses(server)


@pytest.fixture
def login(client, send, pauses):
    return DeviceLogin(client, send, clock=time.time, pause=pauses)


async def test_polls_until_the_user_has_entered_the_code(server, login, pauses):
    pauses.then = {3: "granted"}
    code = await login.begin()
    tokens = await login.finish(code)
    assert tokens.access_token in server.access_tokens
    assert pauses.waited == [1.0, 1.0, 1.0]
    assert (code.url, code.full_url) == (f"{server.url}/enter", f"{server.url}/enter?code={code.user_code}")


@pytest.mark.parametrize(("state", "problem"), [("access_denied", Problem.DENIED), ("expired_token", Problem.EXPIRED)])
async def test_a_refused_or_expired_code_ends_the_login(login, pauses, state, problem):
    pauses.then = {2: state}
    with pytest.raises(OAuthError) as caught:
        await login.finish(await login.begin())
    assert caught.value.problem is problem
    assert len(pauses.waited) == 2


async def test_slow_down_lengthens_every_later_pause(server, login, pauses):
    server.interval_s, server.slow_downs = 5.0, 2
    pauses.then = {4: "granted"}
    await login.finish(await login.begin())
    assert pauses.waited == [5.0, 10.0, 15.0, 15.0]


async def test_a_server_that_is_away_is_asked_less_often_and_then_answers(server, login, pauses):
    code = await login.begin()
    server.status = 503

    async def comes_back(seconds):
        await pauses(seconds)
        if len(pauses.waited) == 3:
            server.status = 200
            server.enter(code.user_code)

    again = DeviceLogin(login._client, login._send, clock=time.time, pause=comes_back)
    assert (await again.finish(code)).access_token in server.access_tokens
    assert pauses.waited == [1.0, 2.0, 4.0]


async def test_a_code_that_is_never_entered_ends_with_its_lifetime(login, pauses):
    code = (await login.begin())._replace(lifetime_s=10.0, interval_s=3.0)
    with pytest.raises(OAuthError, match="not entered in time"):
        await login.finish(code)
    assert sum(pauses.waited) <= 10.0 + 3.0


async def test_an_unusable_answer_is_an_error_and_no_login(client):
    login = DeviceLogin(client, lambda _: HttpAnswer(200, b"<html>"), clock=time.time)
    with pytest.raises(OAuthError, match="no device code"):
        await login.begin()
