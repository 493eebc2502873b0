"""Sessions in a real daemon that talk through a vendor's real SDK to a scripted model over HTTP."""

import json
from contextlib import AsyncExitStack
from types import SimpleNamespace

import pytest
import trustme

from tests.e2e.fleet import until
from tests.e2e.odd import odd, odd_is_known  # noqa: F401  (fixtures)
from tests.e2e.shop import Shop
from zotd import fleet_key
from zotd.testing.live_daemon import DaemonProcess, serving
from zotd.testing.model_server import ModelServer
from zotd.testing.postgres_server import MISSING, PostgresServer
from zotd.testing.wire_client import WireClient

LIVE = {"text_delta", "tool_use_start", "tool_use_args", "tool_use_end", "tool_progress", "retry", "notice"}
BESIDE = {"presence", "heartbeat", "replay_complete"}
"""Events that say nothing of a run."""


class Talk:
    """One session, as one client sees it."""

    def __init__(self, client, session_id, epoch):
        self.client = client
        self.id = session_id
        self.epoch = epoch
        self.snapshot: dict[str, object] = {}
        """As `attach` gave it."""

    def send(self, command, /, **fields):
        return self.client.send(command, session=self.id, **fields)

    async def ask(self, command, /, **fields):
        return await self.client.ask(command, session=self.id, **fields)

    async def refused(self, command, /, **fields):
        return await self.client.refused(command, session=self.id, **fields)

    async def until(self, *kinds):
        """Events of the session up to the first of one of these kinds."""
        found: list[dict[str, object]] = []
        while not found or found[-1]["type"] not in kinds:
            event = await self.client.event()
            if event["type"] not in BESIDE:
                found.append(event)
        return found

    async def run(self, message="go", **fields):
        """Prompt, and everything that comes of it."""
        await self.ask("prompt", message=message, **fields)
        return await self.until("done")

    async def texts(self):
        """The transcript, each message as a role and its words."""
        found = await self.ask("get_messages")
        return [(message["role"], words(message["content"])) for message in found["messages"]]

    async def state(self):
        return (await self.ask("get_state"))["state"]


def words(content):
    return [block.get("text") or block.get("name") or words(block.get("content", [])) for block in content]


def kinds(events):
    """The types of events, runs of the same live one as one."""
    found: list[object] = []
    for event in events:
        if not found or event["type"] != found[-1] or event["type"] not in LIVE:
            found.append(event["type"])
    return found


def only(events, kind):
    return [event for event in events if event["type"] == kind]


class House:
    """A daemon with clients and sessions."""

    def __init__(self, stack, place, daemon=None):
        """`daemon`: the process, when it has one of its own."""
        self.place = place
        self.cwd = place.cwd
        self.daemon = daemon
        self._stack = stack

    def restart(self, number):
        """End the process with a signal, and start it again."""
        self.daemon.end(number)
        self.daemon.start()

    async def connect(self, **hello):
        client = await self._stack.enter_async_context(WireClient.connect(self.place.socket))
        if hello:
            await client.ask("hello", **hello)
        return client

    async def create(self, vendor, server, client=None, **options):
        """A new session that the client, or one of its own, follows."""
        client = client or await self.connect()
        url = {"anthropic": server.url, "openai": server.openai_url}[vendor] if server else None
        options = {
            "cwd": str(self.cwd),
            "provider": vendor,
            "base_url": url,
            "secrets": {"api_key": "sk-scripted-key"},
            "env": {"PATH": self.place.env["PATH"], "HOME": self.place.env["HOME"]},
        } | options
        made = await client.ask("session.create", **options)
        return await self.follow(made["session"]["id"], client, after={"epoch": made["epoch"], "seq": made["seq"]})

    async def follow(self, session_id, client=None, **options):
        client = client or await self.connect()
        found = await client.ask("attach", session=session_id, **options)
        talk = Talk(client, session_id, found["epoch"])
        talk.snapshot = found
        await client.until("replay_complete")
        return talk


@pytest.fixture(params=["anthropic", "openai"])
def vendor(request):
    """Both vendors' SDKs, one after the other."""
    return request.param


@pytest.fixture
async def model():
    """`await model(answer, ...)`: a scripted model that is served until the end of the test."""
    async with AsyncExitStack() as stack:

        async def model(*answers):
            script = answers[0] if len(answers) == 1 and callable(answers[0]) else answers
            return await stack.enter_async_context(ModelServer(script))

        yield model


@pytest.fixture
def variables():
    """Of the daemon's environment, besides those of `zotd.testing.live_daemon.place`."""
    return {}


@pytest.fixture
async def house(tmp_path, monkeypatch, variables):
    """A daemon in this loop."""
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(serving(tmp_path, variables))
        monkeypatch.setenv("HOME", place.env["HOME"])
        yield House(stack, place)


@pytest.fixture
async def process(tmp_path, variables):
    """A daemon in a process of its own."""
    async with AsyncExitStack() as stack:
        daemon = stack.enter_context(DaemonProcess(tmp_path, variables))
        yield House(stack, daemon.place, daemon)


@pytest.fixture
def server():
    """A server of PostgreSQL for one test, which may end it."""
    if MISSING is not None:
        pytest.skip(MISSING)
    server = PostgresServer(fsync=True)
    yield server
    server.close()


@pytest.fixture
def database(server):
    """The address of an empty database."""
    return server.database()


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "key"
    path.write_text(fleet_key.made())
    path.chmod(0o600)
    return path


@pytest.fixture
async def member(database, tmp_path, key_file):
    """`member(name, **variables)`: a daemon with a home, a door and a key."""
    async with AsyncExitStack() as stack:

        def member(name, **variables):
            (tmp_path / name).mkdir()
            given = {
                "ZOT_JOURNAL_URL": database,
                "ZOT_LIMITS_DRAIN_S": "60",
                "ZOT_WEBSOCKET_LISTEN": "127.0.0.1:0",
                "ZOT_FLEET_KEY_FILE": str(key_file),
            }
            given = {variable: value for variable, value in (given | variables).items() if value is not None}
            daemon = stack.enter_context(DaemonProcess(tmp_path / name, given))
            return House(stack, daemon.place, daemon)

        yield member


@pytest.fixture
async def fleet(member, database):
    """Two daemons that know where the other one is."""
    houses = member("one"), member("two")
    await until(database, "SELECT count(*) = 2 FROM daemons WHERE address <> ''")
    return houses


@pytest.fixture
def certificate(tmp_path):
    """`certificate(name)`: settings of a door that shows a new certificate, of an authority that no daemon knows."""

    def certificate(name):
        made = trustme.CA().issue_cert("127.0.0.1")
        made.private_key_pem.write_to_path(tmp_path / f"{name}.key")
        made.cert_chain_pems[0].write_to_path(tmp_path / f"{name}.pem")
        return {
            "ZOT_WEBSOCKET_TLS_KEY": str(tmp_path / f"{name}.key"),
            "ZOT_WEBSOCKET_TLS_CERT": str(tmp_path / f"{name}.pem"),
        }

    return certificate


@pytest.fixture
def talk_in(model):
    """`await talk_in(house, answer, ...)`: a session with a model that needs no key, so that another daemon can go on."""

    async def talk_in(house, *answers, **options):
        url = (await model(*answers)).openai_url
        options = {"model": "m", "provider": "ollama", "base_url": url, "secrets": None} | options
        return await house.create("ollama", None, **options)

    return talk_in


@pytest.fixture
def look():
    """Ways to look at events: `kinds`, `only`, `words`."""
    return SimpleNamespace(kinds=kinds, only=only, words=words)


@pytest.fixture
def results():
    """`results(request)`: the tool results that a request to the model holds, as texts, for both vendors."""

    def results(received):
        found = []
        for message in received.messages:
            if message["role"] == "tool":
                found.append(message["content"])
            blocks = message["content"] if isinstance(message["content"], list) else []
            found += [block["content"] for block in blocks if block.get("type") == "tool_result"]
        return [one if isinstance(one, str) else json.dumps(one) for one in found]

    return results


@pytest.fixture
def shop(house):
    """The daemon's home, to put extensions in."""
    return Shop(house)
