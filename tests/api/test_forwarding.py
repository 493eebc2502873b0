"""Where a command is carried out, with the other daemons played by the test."""

import msgspec
import pytest

from zotd.api import forwarding as module
from zotd.api.dispatch import Invocation
from zotd.api.fleet.relay import RelayedResponse, RelayError
from zotd.api.forwarding import Forwarding
from zotd.sessions.opening import SessionElsewhereError
from zotd.store.members import FleetMember
from zotd.store.ownership import OwnedElsewhereError
from zotd.wire import api
from zotd.wire.errors import CommandError

ONE, TWO = FleetMember(1, "h1", "box1", "wss://box1:1"), FleetMember(2, "h2", "box2", "wss://box2:1")

CONFLICT = RelayedResponse("prompt", success=False, id=1, error="no", code="conflict")


BROKEN = object()
"""Stands for a connection that was ready before the client, and is not good any more."""


class Other:
    """A relay to a daemon that gives these answers, None for one that the client gets."""

    def __init__(self, member, answers):
        self.is_over = False
        self.member = member
        self.sessions = set()
        self.asked = []
        self.params = []
        self.failures = [answer for answer in answers if isinstance(answer, RelayError)]
        self._answers = [answer for answer in answers if not isinstance(answer, RelayError)]

    async def ask(self, command, params, _request_id, succeeded):
        self.asked.append(command)
        self.params.append(params)
        answer = self._answers.pop(0)
        if answer is BROKEN:
            self.is_over = True
            raise RelayError("it does not answer any more")
        if answer is None:
            succeeded()
        return answer

    def close(self):
        self.is_over = True


class Members:
    """The fleet: `answers` of each daemon by its number."""

    def __init__(self, answers):
        self.recent = None
        self.others = {member.number: Other(member, answers.get(member.number, [])) for member in (ONE, TWO)}

    async def relay(self, member, _client):
        other = self.others[member.number]
        if other.failures:
            raise other.failures.pop(0)
        other.is_over = False
        return other

    def used(self, member):
        self.recent = member


class Client:
    def __init__(self):
        self.got = []

    def write(self, data):
        self.got.append(msgspec.json.decode(data))


class Session:
    """A handler for a session that these daemons have, one after the other; None: this one."""

    def __init__(self, *owners):
        self._owners = list(owners)
        self.count = 0

    async def handle(self, _call, _params):
        owner = self._owners.pop(0)
        if owner is not None:
            raise SessionElsewhereError(OwnedElsewhereError("s_1", owner))
        self.count += 1


@pytest.fixture
def client():
    return Client()


@pytest.fixture
def carry_out(client, monkeypatch):
    monkeypatch.setattr(module, "RETRY_S", 0)

    async def carry_out(forwarding, session, command="prompt", params=None):
        call = Invocation(client, None, api.BY_NAME[command], 7)  # type: ignore[arg-type]  # as far as used
        await forwarding.carry_out(call, params or api.OfSession("s_1"), session.handle)

    return carry_out


def forwarding_of(fleet, client):
    return Forwarding(fleet, client)


async def attached(fleet, client, carry_out):
    forwarding = forwarding_of(fleet, client)
    await carry_out(forwarding, Session(ONE), "attach")
    return forwarding


async def test_commands_for_a_session_that_a_client_follows_there_are_sent_there_at_once(client, carry_out):
    fleet = Members({1: [None, None]})
    forwarding = await attached(fleet, client, carry_out)
    session = Session()
    await carry_out(forwarding, session)
    assert (fleet.others[1].asked, session.count) == (["attach", "prompt"], 0)


async def test_a_refusal_of_a_daemon_that_still_has_the_session_is_fleet(client, carry_out):
    fleet = Members({1: [None, CONFLICT]})
    forwarding = await attached(fleet, client, carry_out)
    await carry_out(forwarding, Session(ONE))
    assert [(frame["id"], frame["code"]) for frame in client.got] == [(7, "conflict")]


@pytest.mark.parametrize("owners", [(None,), (TWO,)])
async def test_a_refusal_of_a_daemon_that_has_handed_the_session_over_is_not(client, carry_out, owners):
    fleet = Members({1: [None, CONFLICT], 2: [None]})
    forwarding = await attached(fleet, client, carry_out)
    session = Session(*owners)
    await carry_out(forwarding, session)
    assert all(frame["success"] for frame in client.got)
    assert session.count + len(fleet.others[2].asked) == 1


async def test_a_command_waits_for_a_daemon_that_does_not_answer_until_another_one_has_the_session(client, carry_out):
    fleet = Members({1: [RelayError("away"), RelayError("away")], 2: [None]})
    await carry_out(forwarding_of(fleet, client), Session(ONE, ONE, TWO))
    assert (fleet.others[1].failures, fleet.others[2].asked) == ([], ["prompt"])


@pytest.mark.parametrize("error", [RelayError("wrong key", is_lasting=True), RelayError("away")])
async def test_a_command_that_has_waited_for_long_or_in_vain_is_refused(client, carry_out, monkeypatch, error):
    monkeypatch.setattr(module, "AWAY_S", -1)
    fleet = Members({1: [error]})
    with pytest.raises(CommandError, match=str(error)):
        await carry_out(forwarding_of(fleet, client), Session(ONE))


async def test_a_command_goes_over_another_connection_if_the_one_that_was_ready_is_not_good_any_more(client, carry_out):
    fleet = Members({1: [BROKEN, None]})
    await carry_out(forwarding_of(fleet, client), Session(ONE, ONE), "attach")
    assert fleet.others[1].asked == ["attach", "attach"]
    assert fleet.recent == ONE


async def test_a_command_that_is_not_about_the_session_alone_is_not_sent_to_its_daemon(client, carry_out):
    fleet = Members({})
    with pytest.raises(SessionElsewhereError):
        await carry_out(forwarding_of(fleet, client), Session(ONE), "ping", api.Nothing())
    assert fleet.others[1].asked == []


async def test_the_environment_of_a_client_stays_on_its_machine(client, carry_out):
    fleet = Members({1: [None]})
    params = api.Attach(session="s_1", env={"PATH": "/bin", "OPENAI_API_KEY": "sk-1"})
    await carry_out(forwarding_of(fleet, client), Session(ONE), "attach", params)
    assert fleet.others[1].params == [api.Attach(session="s_1")]


async def test_a_command_whose_client_has_disconnected_is_not_sent(client, carry_out):
    fleet = Members({1: [None]})
    forwarding = forwarding_of(fleet, client)
    forwarding.close()
    with pytest.raises(CommandError, match="has disconnected"):
        await carry_out(forwarding, Session(ONE))
    assert fleet.others[1].asked == []
    assert fleet.others[1].is_over


async def test_an_attach_whose_connections_are_lost_again_and_again_is_refused_after_a_while(
    carry_out, client, monkeypatch
):
    fleet = Members({1: [BROKEN] * 3})
    monkeypatch.setattr(module, "AWAY_S", -1)
    with pytest.raises(CommandError, match=r"open in the daemon box1.*lost before it answers"):
        await carry_out(forwarding_of(fleet, client), Session(*[ONE] * 9), "attach")
    assert fleet.others[1].asked == ["attach"] * 2


async def test_an_attach_is_sent_again_after_each_loss_until_the_session_has_moved(carry_out, client):
    fleet = Members({1: [BROKEN] * 3, 2: [None]})
    await carry_out(forwarding_of(fleet, client), Session(*[ONE] * 3, TWO), "attach")
    assert (fleet.others[1].asked, fleet.others[2].asked) == (["attach"] * 3, ["attach"])
