"""What the user says on its way to the daemon: it arrives once, also when the connection is lost on the way."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress

from zotd.client import place, slash
from zotd.client.errors import CallError, ClientError, ConnectionLostError, NoAnswerError
from zotd.wire import api
from zottui.asking import Refreshing
from zottui.choice import ListChoice
from zottui.commands import COMMANDS
from zottui.commands.command import UsageError, of
from zottui.editor.editor import PromptEditor
from zottui.editor.images import ImageError
from zottui.editor.mentions import with_mentioned_images
from zottui.editor.placeholders import EditorDraft, Submission
from zottui.editor.ranking import nearest
from zottui.ui_context import UiContext

BUILT_IN = tuple(
    ListChoice(command.name, command.summary, needs_argument=command.args[:1].isalpha()) for command in COMMANDS
)


OURS = "built in"
"""The source of a command that is neither an extension's nor a skill; it is not named, as those of this client are not."""

NOT_SENT = "not sent; the prompt is back in the editor: enter sends it, typing replaces it, up restores it"

NOT_SENT_BEFORE = "not sent; the prompt is back in the editor, before your new text"

SENT_S = 2.0
"""How long leaving waits for what was sent last; the daemon accepts in milliseconds."""


class Submitter:
    """Takes what was typed: a prompt, a slash command, `!command`."""

    def __init__(self, desk: UiContext, own: Callable[[str], None], editor: Callable[[], PromptEditor]) -> None:
        """`own` is told the id of each input that the daemon has accepted from here; `editor` gets what it has not."""
        self._desk = desk
        self._own = own
        self._editor = editor
        self._live = asyncio.Event()
        self._unsent: list[Submission] = []
        """Prompts that were not accepted yet."""
        self._all_sent = asyncio.Event()
        self._all_sent.set()
        self._has_session = asyncio.Event()
        self._drafts: dict[str, EditorDraft] = {}
        """What inputs looked like in the editor, by id; those that may still wait."""
        self._learning = Refreshing(desk, self._learn)
        self.learnt: tuple[ListChoice, ...] = ()
        """Slash commands of the daemon, of extensions and of skills."""

    @property
    def commands(self) -> tuple[ListChoice, ...]:
        """All slash commands that there are now."""
        return BUILT_IN + self.learnt

    def attached(self) -> None:
        """The daemon can be asked; what waited goes out."""
        self._live.set()
        self._has_session.set()
        self.learn()

    def learn(self) -> None:
        """Ask which slash commands there are: extensions come and go."""
        self._learning.want()

    def lost(self) -> None:
        """It cannot be asked: prompts wait."""
        self._live.clear()

    def leaves(self) -> None:
        """The session is left for another one: what is typed meanwhile is meant for that."""
        self._live.clear()
        self._has_session.clear()

    def submit(self, submission: Submission, when_busy: str) -> bool:
        """Take it, which always works: what cannot be sent now is sent later, and what cannot be done is said."""
        text = submission.text.strip()
        command = slash.parsed(text)
        if text.startswith("!"):
            self._desk.spawn(self._shell(text))
        elif command is not None:
            self._desk.spawn(self._command(*command))
        else:
            self._desk.spawn(self._prompt(submission, when_busy))
        return True

    def recall(self) -> bool:
        """Take the newest input from here that waits back; whether there is one."""
        waiting = [item.id for item in self._desk.state.queue if item.id in self._drafts]
        if waiting:
            # Taken at once: who presses the key twice wants two of them.
            self._desk.spawn(self._withdraw(waiting[-1], self._drafts.pop(waiting[-1])))
        return bool(waiting)

    async def _withdraw(self, key: str, draft: EditorDraft) -> None:
        try:
            await self._desk.ask(api.QueueWithdraw(session=of(self._desk), input=key), api.Nothing)
        except ClientError:
            self._drafts[key] = draft
            raise
        self._editor().put_back(draft)

    async def leaving(self) -> list[EditorDraft]:
        """Wait for what was just sent, as long as that can be accepted; what was not, for whoever comes back."""
        if self._live.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(SENT_S):
                    await self._all_sent.wait()
        return [submission.draft for submission in self._unsent]

    async def _prompt(self, submission: Submission, when_busy: str) -> None:
        """Have it accepted; what is refused is in the editor again."""
        self._unsent.append(submission)
        self._all_sent.clear()
        try:
            await self._send(await self._with_images(submission), when_busy)
            self._unsent.remove(submission)
        except (CallError, UsageError) as error:
            self._unsent.remove(submission)
            self._desk.say(str(error), "error")
            self._desk.say(NOT_SENT if not self._desk.text else NOT_SENT_BEFORE)
            self._editor().give_back(submission.draft)
        finally:
            if not self._unsent:
                self._all_sent.set()

    async def _with_images(self, submission: Submission) -> Submission:
        """The prompt with the images that it mentions; those of another machine are the model's to read."""
        if place.of(self._desk.env).is_remote or "@" not in submission.text:
            return submission
        try:
            return await asyncio.to_thread(with_mentioned_images, submission, self._desk.cwd)
        except ImageError as error:
            raise UsageError(str(error)) from error

    async def _send(self, submission: Submission, when_busy: str) -> None:
        await self._live.wait()
        params = api.Prompt(
            session=of(self._desk),
            message=slash.unescaped(submission.text.strip()),
            images=list(submission.images),
            when_busy=when_busy,
            request_id=_request_id(),
        )
        started = await self._answered(params)
        if started.input is not None:
            self._drafts = {
                item.id: self._drafts[item.id] for item in self._desk.state.queue if item.id in self._drafts
            }
            self._drafts[started.input] = submission.draft
            self._own(started.input)

    async def _answered(self, params: api.Prompt | api.Shell) -> api.Started:
        while True:
            await self._live.wait()
            try:
                return await self._desk.ask(params, api.Started)
            except ConnectionLostError:
                self.lost()  # until the next snapshot
            except NoAnswerError:
                self._desk.say("zotd has not answered yet; sending again", "warn")

    async def _command(self, name: str, args: str) -> None:
        """Ours, or one of the daemon, an extension or a skill."""
        own = next((command for command in COMMANDS if command.name == name.casefold()), None)
        if own is not None:
            await self._has_session.wait()  # nearly all are about it, and people type ahead
            await own.run(self._desk, args.strip())
            return
        await self._live.wait()
        params = api.RunCommand(session=of(self._desk), name=name, args=args)
        try:
            answer = await self._desk.ask(params, api.CommandResult, timeout_s=slash.COMMAND_S)
        except CallError as error:
            raise self._unknown(name) if error.code == "not_found" else error from error
        if answer.input is not None:
            self._own(answer.input)
        if answer.extension is None and answer.text:
            self._desk.say(answer.text)

    def _unknown(self, name: str) -> UsageError:
        meant = nearest(name, (choice.name for choice in self.commands))
        return UsageError(
            f"unknown command /{name}" + (f"; did you mean /{meant}?" if meant else "; /help lists the commands")
        )

    async def _shell(self, text: str) -> None:
        """`!command` shows its output to the model, too; `!!command` only to people."""
        for_model = not text.startswith("!!")
        command = text.lstrip("!").strip()
        if not command:
            raise UsageError("!COMMAND runs a shell command and shows its output to the model, !!COMMAND only to you")
        await self._live.wait()
        session = of(self._desk)
        await self._answered(api.Shell(session=session, command=command, context=for_model, request_id=_request_id()))

    async def _learn(self) -> None:
        """Ask which commands there are besides ours."""
        params = api.Complete(session=of(self._desk), kind="command", text="")
        found = await self._desk.ask(params, api.Completions)
        ours = {command.name for command in COMMANDS}
        self.learnt = tuple(
            ListChoice(each.text, each.detail, each.source if each.source != OURS else "")
            for each in found.found
            if each.text not in ours
        )


def _request_id() -> str:
    """By which the daemon knows a request that comes again, also after a restart."""
    return os.urandom(16).hex()
