"""An editor in an application of its own, with keys from a pipe and no terminal."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.data_structures import Size
from prompt_toolkit.filters import Condition
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.key_binding import KeyBindings, KeyPress, merge_key_bindings
from prompt_toolkit.key_binding.key_processor import _Flush
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import Layout
from prompt_toolkit.output import DummyOutput

from tests.zottui.fake_ui import FakeUi
from zotd.wire.api import Attached, SessionInfo
from zotd.wire.content import Message, Text, Tokens
from zottui.choice import ListChoice
from zottui.editor.editor import PromptEditor
from zottui.editor.placeholders import Submission
from zottui.keys import DialogKeys
from zottui.state import ViewState

PROBE = "\x1b[24~"
"""F12: what was sent before it has been handled."""

PATIENCE_S = 40

COLUMNS = 80


class Output(DummyOutput):
    def get_size(self):
        return Size(rows=40, columns=COLUMNS)


class Typing:
    """The editor, its fake application, and the keyboard."""

    def __init__(self, fake_ui: FakeUi, pipe: PipeInput, **given):
        self.fake_ui = fake_ui
        self.pipe = pipe
        self.sent: list[tuple[Submission, str]] = []
        self.takes = True
        self.commands: list[ListChoice] = []
        self.recalled: list[str] = []
        self.handled = asyncio.Event()
        self.editor = PromptEditor(
            fake_ui,
            submit=self.submit,
            commands=lambda: self.commands,
            **{"arguments": {}, "last_reply": lambda: "", "recall": self.recall, **given},
        )
        dialogs = DialogKeys(self.offer, lambda: bool(self.fake_ui.dialogs))
        probe = KeyBindings()
        probe.add("f12", filter=Condition(lambda: True))(lambda _: self.handled.set())
        made = KeyBindings()
        dialogs.add_to(made)
        self.app: Application[None] = Application(
            Layout(self.editor.window),
            key_bindings=merge_key_bindings([made, probe]),
            editing_mode=self.editor.editing_mode,
            cursor=self.editor.cursor,
            input=pipe,
            output=Output(),
        )
        dialogs.watch(self.app.key_processor)

    def submit(self, submission, when_busy):
        if self.takes:
            self.sent.append((submission, when_busy))
        return self.takes

    def recall(self):
        if self.recalled:
            self.editor.text = self.recalled.pop()
            return True
        return False

    def offer(self, name, text):
        return name != "f12" and self.fake_ui.dialogs[-1].key(name, text)

    async def type(self, text: str) -> None:
        """Send what a terminal would, and wait until it is handled, with what it has set off."""
        self.handled.clear()
        self.pipe.send_text(text + PROBE)
        async with asyncio.timeout(PATIENCE_S):
            await self.handled.wait()
        await self.fake_ui.turn()

    async def press(self, *keys: str) -> None:
        """Keys that a terminal sends as a beginning of others, such as Escape."""
        with set_app(self.app):
            for key in keys:
                self.app.key_processor.feed(KeyPress(Keys(key) if len(key) > 1 else key))
            self.app.key_processor.feed(_Flush)
            self.app.key_processor.process_keys()
        await self.fake_ui.turn()

    async def paste(self, text: str) -> None:
        await self.type(f"\x1b[200~{text}\x1b[201~")

    async def settled(self) -> None:
        """Wait for what has been spawned: threads and processes end in it."""
        async with asyncio.timeout(PATIENCE_S):
            while left := [task for task in self.fake_ui._left if not task.done()]:
                await asyncio.wait(left)

    async def restored(self) -> None:
        """Wait until the session's draft has been read; writing goes on beside."""
        async with asyncio.timeout(PATIENCE_S):
            while self.editor._is_restoring:
                left = [task for task in self.fake_ui._left if not task.done()]
                await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)

    @property
    def text(self) -> str:
        return self.editor.text

    @property
    def texts(self) -> list[str]:
        return [submission.text for submission, _ in self.sent]

    def lines(self, width: int = COLUMNS) -> list[str]:
        """What the dialog on top shows."""
        return self.fake_ui.screen(width).split("\n")


@asynccontextmanager
async def typing(*, env=None, state: ViewState | None = None, **given) -> AsyncIterator[Typing]:
    """Run an editor; what is given besides goes to it."""
    async with FakeUi(state, env=env) as fake_ui:
        with create_pipe_input() as pipe:
            typed = Typing(fake_ui, pipe, **given)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(typed.app.run_async())
                try:
                    await typed.type("")
                    yield typed
                    await fake_ui.turn()
                finally:
                    typed.app.exit()


def snapshot(session: str = "s_1", prompts: Sequence[str] = ()) -> Attached:
    info = SessionInfo(
        id=session,
        name="",
        cwd="/home/me/p",
        provider="fake",
        model="demo",
        reasoning="",
        mode="ask",
        state="idle",
        created="2026-11-22T00:00:00.000Z",
        updated="2026-11-22T00:00:00.000Z",
    )
    messages = [Message("user", [Text(words)], "2026-11-22T00:00:00.000Z") for words in prompts]
    return Attached(
        mode="snapshot",
        session=info,
        seq=1,
        epoch="e",
        usage=Tokens(),
        queue=[],
        approvals=[],
        panels=[],
        status=[],
        notes=[],
        run=None,
        messages=messages,
        has_more=False,
    )
