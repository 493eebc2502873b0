"""The session of a daemon, while an agent is attached to it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Self

from zot.approver import deciding
from zot.attach_options import CheckedAttachOptions
from zot.errors import AgentBusyError, AgentError
from zot.held import HeldContext
from zot.turns import LEAVE_S
from zotd.client.client import Client
from zotd.client.connection import AsyncFeed
from zotd.client.errors import CallError, ClientError
from zotd.client.runs import Run
from zotd.client.selection import run_of, select
from zotd.client.session import Session
from zotd.wire import api, events
from zotd.wire.content import Message, ToolCall
from zotd.wire.errors import Code


class AttachedConversation:
    """A session of a daemon; satisfies `conversation.Conversation`."""

    def __init__(self, attachment: "HeldContext[_Attachment]", replied: Callable[[int], None]) -> None:
        """Use `open`."""
        self._replied = replied
        self._held = attachment
        self._client = attachment.value.client
        self._session = attachment.value.session

    @classmethod
    async def open(cls, options: CheckedAttachOptions, replied: Callable[[int], None]) -> Self:
        """Connect to the daemon, which is started if none runs, and follow the session.

        `replied` is called with the `seq` of each reply without calls.

        Raises:
            AgentError: there is no such session, or the daemon cannot be reached.
        """
        with _told():
            return cls(await HeldContext.enter(_attached(options)), replied)

    async def messages(self) -> Sequence[Message]:
        """Return the conversation now, oldest first; images without their data."""
        with _told():
            return tuple(await self._session.messages())

    async def prompt(self, text: str, images: Sequence[api.PromptImage]) -> AsyncGenerator[events.Event, None]:
        """Send a prompt and yield its events; the last one is `Done`. Closing the generator aborts the run.

        Raises:
            AgentBusyError: another client's prompt is being answered.
        """
        with _told(), self._client.connection.feed(self._session.id) as feed:
            prompt = api.Prompt(session=self._session.id, message=text, images=list(images), when_busy="reject")
            run = run_of(await self._client.ask(prompt, api.Started))
            try:
                async for event in _of_run(run, feed):
                    self._note(event)
                    yield event
            finally:
                if not run.over:
                    await self._end(run, feed)

    async def abort(self) -> None:
        """Abort the run; its events still end with `Done`."""
        with suppress(AgentError), _told():  # without a connection, the prompt tells of that
            await self._session.abort()

    async def close(self) -> None:
        """Leave the session, which stays in the daemon."""
        await self._held.leave()

    def _note(self, event: events.Event) -> None:
        if not isinstance(event, events.AssistantMessage) or event.seq is None:
            return
        if not any(isinstance(block, ToolCall) for block in event.content):
            self._replied(event.seq)

    async def _end(self, run: Run, feed: AsyncFeed) -> None:
        """Abort the run and wait for its end; a daemon that cannot be reached goes on with it."""
        with suppress(ClientError, TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                await self._session.abort()
                while not run.over:
                    select(run, await feed.batch())


@dataclass(frozen=True, slots=True)
class _Attachment:
    client: Client
    session: Session


async def forked(options: CheckedAttachOptions) -> str:
    """Fork the session in the daemon, at `fork_at`, and return the id of the new one. Raises AgentError."""
    with _told():
        async with _connecting(options) as client:
            fork = api.Fork(session=await _session_id(client, options.session), seq=options.fork_at)
            return (await client.ask(fork, api.Created)).session.id


def _connecting(options: CheckedAttachOptions) -> AbstractAsyncContextManager[Client]:
    return Client.connect(
        name="zot.Agent",
        can_approve=options.approver is not None,
        env=options.env,
        path=options.socket,
        host=options.host,
        token_file=options.token_file,
        ca_file=options.ca_file,
    )


async def _session_id(client: Client, word: str) -> str:
    """Return the id of the session with this id, or else of the newest one with this name."""
    if word.startswith("s_"):
        return word
    for session in await client.sessions():
        if session.name == word:
            return session.id
    raise AgentError(f"there is no session {word}; `zotctl sessions` lists them")


@asynccontextmanager
async def _attached(options: CheckedAttachOptions) -> AsyncIterator[_Attachment]:
    async with _connecting(options) as client:
        session = await _session_id(client, options.session)
        with client.connection.feed(session) as feed:
            snapshot = await client.attach(session, limit=1)
            attachment = _Attachment(client, client.session(session))
            if options.approver is None:
                yield attachment
                return

            async def decide(decision: api.Approve) -> None:
                with _told():
                    await client.ask(decision, api.Nothing)

            async with deciding(options.approver, _events(snapshot, feed), decide):
                yield attachment


async def _of_run(run: Run, feed: AsyncFeed) -> AsyncIterator[events.Event]:
    while not run.over:
        for event in select(run, await feed.batch()):
            yield event


async def _events(snapshot: api.Attached, feed: AsyncFeed) -> AsyncIterator[events.Event]:
    """Yield the calls that wait for a decision, then the events of the session, up to the end of the connection."""
    for asked in snapshot.approvals:
        yield asked
    with suppress(ClientError):  # the prompt tells of it
        while True:
            for event in await feed.batch():
                yield event


@contextmanager
def _told() -> Iterator[None]:
    """Translate the errors of the client."""
    try:
        yield
    except CallError as error:
        if error.code == Code.BUSY:
            raise AgentBusyError("the session is answering another prompt; wait for it, or abort it") from error
        raise AgentError(error.sentence) from error
    except ClientError as error:
        raise AgentError(str(error)) from error
