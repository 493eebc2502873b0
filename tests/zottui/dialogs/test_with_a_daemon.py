"""Dialogs whose commands the real daemon carries out."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.zottui.fake_ui import FakeUi
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


class LiveDesk(FakeUi):
    """A fake application that sends its commands to a daemon, in one session."""

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
    """Open a fake application in a new session whose model gives these answers in order."""
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
            fake_ui = await stack.enter_async_context(LiveDesk(client, admin, created.session.id, place))
            await fake_ui.attach()
            return fake_ui

        yield opened


async def say(fake_ui, words):
    """Give the session a prompt."""
    await fake_ui.ask(api.Prompt(session=fake_ui.session, message=words), api.Started)


@pytest.mark.parametrize("keys", ["y", "s", "ay"])
async def test_a_call_runs_when_it_is_allowed(opened, keys):
    fake_ui = await opened(TOUCH, DONE)
    await say(fake_ui, "go")
    await fake_ui.shows("touch out")
    await fake_ui.press(*keys)
    await fake_ui.rests()
    assert fake_ui.has_touched


async def test_the_model_is_told_why_a_call_was_denied(opened):
    fake_ui = await opened(TOUCH, DONE)
    await say(fake_ui, "go")
    await fake_ui.shows("touch out")
    await fake_ui.press("f", *"not here", "enter")
    await fake_ui.rests()
    page = await fake_ui.client.ask(api.GetMessages(session=fake_ui.session), api.Messages)
    assert any("not here" in str(message.content) for message in page.messages)
    assert not fake_ui.has_touched


async def test_a_decision_from_elsewhere_closes_the_question(opened):
    fake_ui = await opened(TOUCH, DONE)
    await say(fake_ui, "go")
    await fake_ui.shows("touch out")
    (one,) = (await fake_ui.admin.ask(api.ApprovalScope(), api.Approvals)).approvals
    params = api.Approve(session=fake_ui.session, approval=one.approval, args_digest=one.args_digest, decision="deny")
    await fake_ui.admin.ask(params, api.Nothing)
    await fake_ui.rests()


async def test_a_call_is_decided_about_in_the_overview(opened):
    fake_ui = await opened(TOUCH, DONE)
    fake_ui.questions.look = lambda: None  # the overview is what asks
    await say(fake_ui, "go")
    await fake_ui.until(lambda: fake_ui.state.approvals)
    overview = Overview(fake_ui)
    fake_ui.open(overview)
    await fake_ui.shows("touch out")
    await fake_ui.press("y", "escape")
    await fake_ui.rests()
    assert fake_ui.has_touched


async def test_sessions_are_made_renamed_and_deleted(opened):
    fake_ui = await opened(DONE)
    fake_ui.open(Picker(fake_ui))
    await fake_ui.shows("tests (here)")
    await fake_ui.press("c-r", "c-u", *"other name", "enter")
    await fake_ui.shows("other name (here)")
    await fake_ui.press("c-n")
    await fake_ui.until(lambda: fake_ui.switched)
    fake_ui.open(Picker(fake_ui))
    await fake_ui.shows(fake_ui.switched[0])
    await fake_ui.press(*fake_ui.switched[0][-8:], "c-d", "y")
    await fake_ui.until(lambda: fake_ui.administered and fake_ui.switched[0] not in fake_ui.screen())
    with pytest.raises(CallError, match="no session"):
        await fake_ui.ask(api.OfSession(fake_ui.switched[0]), api.SessionInfo, command="session.get")


async def test_one_goes_back_to_a_branch_that_was_left(opened):
    fake_ui = await opened(*[DONE] * 3, mode="yolo")
    for words in ("one", "two"):
        await say(fake_ui, words)
        await fake_ui.until(lambda: fake_ui.state.run is not None)
        await fake_ui.rests()
    page = await fake_ui.ask(api.History(session=fake_ui.session), api.HistoryPage)
    await fake_ui.ask(api.Rewind(session=fake_ui.session, seq=page.messages[1].seq), api.FilesRestored)
    await say(fake_ui, "three")
    await fake_ui.until(lambda: fake_ui.state.run is not None)
    await fake_ui.rests()
    fake_ui.spawn(tree.browse(fake_ui))
    await fake_ui.shows("● here")
    await fake_ui.press("up", "enter")
    await fake_ui.shows("rewind to here")
    await fake_ui.press("enter")
    await fake_ui.until(
        lambda: any(isinstance(one, api.Rewind) and one.seq == page.messages[-1].seq for one in fake_ui.asked[-1:])
    )
    page = await fake_ui.ask(api.History(session=fake_ui.session), api.HistoryPage)
    assert [message.role for message in page.messages] == ["user", "assistant"] * 2
