"""Dialogs whose commands the real daemon carries out."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.zottui.desk import FakeDesk
from zotd.client.client import Client
from zotd.client.errors import CallError
from zotd.testing.live_daemon import serving
from zotd.testing.model_server import ModelServer
from zotd.testing.script import CallPart, ScriptedReply, TextPart
from zotd.wire import api
from zottui.dialogs import tree
from zottui.dialogs.approval import QUIET_S
from zottui.dialogs.overview import Overview
from zottui.dialogs.picker import Picker
from zottui.dialogs.questions import ApprovalDialogs
from zottui.reduce import reduce
from zottui.state import ViewState

TOUCH = ScriptedReply([CallPart("bash", {"command": "touch out"})])
DONE = ScriptedReply([TextPart(["done"])])


class LiveDesk(FakeDesk):
    """A desk that asks a daemon, in one session of it."""

    def __init__(self, client, admin, session, place):
        super().__init__(ViewState(), cwd=str(place.cwd), env=dict(place.env))
        self.client, self.admin, self.session = client, admin, session
        self.questions = ApprovalDialogs(self)

    async def _reply(self, params, result, command):
        client = self.admin if any(params is one for one in self.administered) else self.client
        try:
            return await client.ask(params, result, command=command)
        finally:
            self._news.set()

    async def attach(self):
        self.take(await self.client.attach(self.session))
        self.spawn(self.follow())

    async def follow(self):
        async for batch in self.client.session(self.session).batches():
            self.take(batch)

    def take(self, item):
        self.state, _ = reduce(self.state, item, self.now())
        self.questions.look()
        self.time += QUIET_S
        self._news.set()

    async def shows(self, words):
        await self.until(lambda: self.dialogs and words in self.screen())

    @property
    def has_touched(self):
        return Path(self.cwd, "out").exists()

    async def rests(self):
        await self.until(lambda: self.state.run is None and not self.dialogs)


@pytest.fixture
async def opened(tmp_path):
    """Opens a desk in a new session whose model says these, one after the other."""
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(serving(tmp_path, {"OPENAI_API_KEY": "sk-x"}))

        async def connect(**options):
            return await stack.enter_async_context(
                Client.connect(path=place.socket, env=place.env, autostart=False, **options)
            )

        client, admin = await connect(can_approve=True), await connect(role="admin")

        async def opened(*replies, mode="ask"):
            server = await stack.enter_async_context(ModelServer(replies))
            params = api.SessionCreate(
                cwd=str(place.cwd),
                name="tests",
                provider="openai",
                model="m",
                base_url=server.openai_url,
                secrets=api.Secrets("sk-x"),
                mode=mode,
                env=dict(place.env),
            )
            created = await client.ask(params, api.Created)
            desk = await stack.enter_async_context(LiveDesk(client, admin, created.session.id, place))
            await desk.attach()
            return desk

        yield opened


async def say(desk, words):
    """Give the session a prompt."""
    await desk.ask(api.Prompt(session=desk.session, message=words), api.Started)


@pytest.mark.parametrize("keys", ["y", "s", "ay"])
async def test_a_call_runs_when_it_is_allowed(opened, keys):
    desk = await opened(TOUCH, DONE)
    await say(desk, "go")
    await desk.shows("touch out")
    await desk.press(*keys)
    await desk.rests()
    assert desk.has_touched


async def test_the_model_is_told_why_a_call_was_denied(opened):
    desk = await opened(TOUCH, DONE)
    await say(desk, "go")
    await desk.shows("touch out")
    await desk.press("f", *"not here", "enter")
    await desk.rests()
    page = await desk.client.ask(api.GetMessages(session=desk.session), api.Messages)
    assert any("not here" in str(message.content) for message in page.messages)
    assert not desk.has_touched


async def test_a_decision_from_elsewhere_closes_the_question(opened):
    desk = await opened(TOUCH, DONE)
    await say(desk, "go")
    await desk.shows("touch out")
    (one,) = (await desk.admin.ask(api.ApprovalScope(), api.Approvals)).approvals
    params = api.Approve(session=desk.session, approval=one.approval, args_digest=one.args_digest, decision="deny")
    await desk.admin.ask(params, api.Nothing)
    await desk.rests()


async def test_a_call_is_decided_about_in_the_overview(opened):
    desk = await opened(TOUCH, DONE)
    desk.questions.look = lambda: None  # the overview is what asks
    await say(desk, "go")
    await desk.until(lambda: desk.state.approvals)
    overview = Overview(desk)
    desk.open(overview)
    await desk.shows("touch out")
    await desk.press("y", "escape")
    await desk.rests()
    assert desk.has_touched


async def test_sessions_are_made_renamed_and_deleted(opened):
    desk = await opened(DONE)
    desk.open(Picker(desk))
    await desk.shows("tests (here)")
    await desk.press("c-r", "c-u", *"other name", "enter")
    await desk.shows("other name (here)")
    await desk.press("c-n")
    await desk.until(lambda: desk.switched)
    desk.open(Picker(desk))
    await desk.shows(desk.switched[0])
    await desk.press(*desk.switched[0][-8:], "c-d", "y")
    await desk.until(lambda: desk.administered and desk.switched[0] not in desk.screen())
    with pytest.raises(CallError, match="no session"):
        await desk.ask(api.OfSession(desk.switched[0]), api.SessionInfo, command="session.get")


async def test_one_goes_back_to_a_branch_that_was_left(opened):
    desk = await opened(*[DONE] * 3, mode="yolo")
    for words in ("one", "two"):
        await say(desk, words)
        await desk.until(lambda: desk.state.run is not None)
        await desk.rests()
    page = await desk.ask(api.History(session=desk.session), api.HistoryPage)
    await desk.ask(api.Rewind(session=desk.session, seq=page.messages[1].seq), api.Nothing)
    await say(desk, "three")
    await desk.until(lambda: desk.state.run is not None)
    await desk.rests()
    desk.spawn(tree.browse(desk))
    await desk.shows("● here")
    await desk.press("up", "enter")
    await desk.shows("rewind to here")
    await desk.press("enter")
    await desk.until(
        lambda: any(isinstance(one, api.Rewind) and one.seq == page.messages[-1].seq for one in desk.asked[-1:])
    )
    page = await desk.ask(api.History(session=desk.session), api.HistoryPage)
    assert [message.role for message in page.messages] == ["user", "assistant"] * 2
