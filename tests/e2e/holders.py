"""Clients with the token of a user."""

from zotd.client.client import Client
from zotd.wire import api


class Holder:
    """A client of the WebSocket door of a daemon."""

    def __init__(self, client, house):
        self.client = client
        self.house = house

    async def begin(self, server=None, **options):
        """A new session; with a scripted server, of a model with prices."""
        cwd = str(self.house.cwd)
        if server is None:
            order = api.SessionCreate(cwd=cwd, provider="ollama", model="none", **options)
        else:
            secrets = api.Secrets(api_key="sk-scripted-key")
            given = {"provider": "openai", "model": "gpt-4o", "base_url": server.openai_url} | options
            order = api.SessionCreate(cwd=cwd, secrets=secrets, **given)
        return (await self.client.ask(order, api.Created)).session

    async def run(self, session, message="go"):
        """Prompt the session, and wait for the end."""
        talk = await self.house.follow(session)
        await self.client.call(api.Prompt(session=session, message=message))
        await talk.until("done")

    async def ids(self, **wanted):
        """The ids of the sessions that a list has."""
        page = await self.client.ask(api.SessionList(**wanted), api.Sessions)
        return {one.id for one in page.sessions}


async def token_of(house, user, name=None, role="approve"):
    """The file of a new token of this user."""
    admin = await house.connect(role="admin")
    name = name or user
    made = await admin.ask("token.create", name=name, role=role, user=user)
    path = house.cwd.parent / f"{name}.token"
    path.write_text(made["token"])
    path.chmod(0o600)
    return path


async def joined(stack, house, user, name=None, role="approve"):
    """A client with a new token of this user."""
    path = await token_of(house, user, name, role)
    url = (await (await house.connect()).ask("daemon.status"))["websocket"]
    url = url.removesuffix("/v1")
    env = {"HOME": str(path.parent), "ZOT_HOME": str(path.parent / f"client-{path.name}")}
    client = await stack.enter_async_context(Client.connect(host=url, token_file=str(path), env=env, role=role))
    return Holder(client, house)
