"""Sends what the user submits to the daemon, exactly once even if the connection is lost in between."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress

from zotd.client import place, slash
from zotd.client.errors import CallError, ClientError, ConnectionLostError, NoAnswerError
from zotd.wire import api, slash_lines
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
"""The daemon's `source` of its own commands; lists show no source for them, as for the client's commands."""

NOT_SENT = "not sent; the prompt is back in the editor: enter sends it, typing replaces it, up restores it"

NOT_SENT_BEFORE = "not sent; the prompt is back in the editor, before your new text"

SENT_S = 2.0
"""Seconds that leaving waits for the daemon to accept the last prompts, which takes milliseconds."""


class Submitter:
    """Submits prompts, slash commands and `!command`, and keeps prompts that the daemon has not accepted yet."""

    def __init__(self, ui: UiContext, own: Callable[[str], None], editor: Callable[[], PromptEditor]) -> None:
        """`own` is called with the id of each accepted input; the editor gets prompts back that were refused."""
        self._ui = ui
        self._own = own
        self._editor = editor
        self._live = asyncio.Event()
        # Prompts that the daemon has not accepted yet.
        self._unsent: list[Submission] = []
        self._all_sent = asyncio.Event()
        self._all_sent.set()
        self._has_session = asyncio.Event()
        # Drafts of accepted inputs that may still be queued, by input id, for `recall`.
        self._drafts: dict[str, EditorDraft] = {}
        self._learning = Refreshing(ui, self._learn)
        self.learnt: tuple[ListChoice, ...] = ()
        """Slash commands of the daemon, extensions and skills."""

    @property
    def commands(self) -> tuple[ListChoice, ...]:
        """Slash commands of the client, the daemon, extensions and skills."""
        return BUILT_IN + self.learnt

    def attached(self) -> None:
        """The client is attached: send waiting prompts."""
        self._live.set()
        self._has_session.set()
        self.learn()

    def learn(self) -> None:
        """Reload the daemon's slash commands; extensions may have come or gone."""
        self._learning.want()

    def lost(self) -> None:
        """The connection is lost: prompts wait."""
        self._live.clear()

    def leaves(self) -> None:
        """The client switches to another session: what is submitted from now on waits for that one."""
        self._live.clear()
        self._has_session.clear()

    def submit(self, submission: Submission, when_busy: str) -> bool:
        """Take a submission; always returns True. It waits if it cannot be sent now, and errors are printed later."""
        text = submission.text.strip()
        command = slash_lines.parsed(text)
        if text.startswith("!"):
            self._ui.spawn(self._shell(text))
        elif command is not None:
            self._ui.spawn(self._command(*command))
        else:
            self._ui.spawn(self._prompt(submission, when_busy))
        return True

    def recall(self) -> bool:
        """Withdraw this client's newest queued input into the editor; return whether there is one."""
        waiting = [item.id for item in self._ui.state.queue if item.id in self._drafts]
        if waiting:
            # Remove the draft before the daemon answers: pressing the key twice must withdraw two different inputs.
            self._ui.spawn(self._withdraw(waiting[-1], self._drafts.pop(waiting[-1])))
        return bool(waiting)

    async def _withdraw(self, key: str, draft: EditorDraft) -> None:
        try:
            await self._ui.ask(api.QueueWithdraw(session=of(self._ui), input=key), api.Nothing)
        except ClientError:
            self._drafts[key] = draft  # still queued, as far as we know: allow another attempt
            raise
        self._editor().put_back(draft)

    async def leaving(self) -> list[EditorDraft]:
        """Wait up to `SENT_S` for prompts in flight; return the drafts of those that were not accepted."""
        if self._live.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(SENT_S):
                    await self._all_sent.wait()
        return [submission.draft for submission in self._unsent]

    async def _prompt(self, submission: Submission, when_busy: str) -> None:
        """Send a prompt; if it is refused, print why and put it back into the editor."""
        self._unsent.append(submission)
        self._all_sent.clear()
        try:
            await self._send(await self._with_images(submission), when_busy)
            self._unsent.remove(submission)
        except (CallError, UsageError) as error:
            self._unsent.remove(submission)
            self._ui.say(str(error), "error")
            self._ui.say(NOT_SENT if not self._ui.text else NOT_SENT_BEFORE)
            self._editor().give_back(submission.draft)
        finally:
            if not self._unsent:
                self._all_sent.set()

    async def _with_images(self, submission: Submission) -> Submission:
        """Attach the images that the prompt mentions. A remote session's files are on the other machine: skip them."""
        if place.of(self._ui.env).is_remote or "@" not in submission.text:  # without "@" no thread is needed
            return submission
        try:
            return await asyncio.to_thread(with_mentioned_images, submission, self._ui.cwd)
        except ImageError as error:
            raise UsageError(str(error)) from error

    async def _send(self, submission: Submission, when_busy: str) -> None:
        await self._live.wait()
        params = api.Prompt(
            session=of(self._ui),
            message=slash_lines.unescaped(submission.text.strip()),
            images=list(submission.images),
            when_busy=when_busy,
            request_id=_request_id(),
        )
        started = await self._answered(params)
        if started.input is not None:
            # Forget drafts of inputs that have left the queue: they cannot be withdrawn any more.
            self._drafts = {item.id: self._drafts[item.id] for item in self._ui.state.queue if item.id in self._drafts}
            self._drafts[started.input] = submission.draft
            self._own(started.input)

    async def _answered(self, params: api.Prompt | api.Shell) -> api.Started:
        # The request id makes repetitions safe: the daemon answers a repeated request from its record.
        while True:
            await self._live.wait()
            try:
                return await self._ui.ask(params, api.Started)
            except ConnectionLostError:
                self.lost()  # wait for the next attach, and send again
            except NoAnswerError:
                self._ui.say("zotd has not answered yet; sending again", "warn")

    async def _command(self, name: str, args: str) -> None:
        """Run a slash command of the client, or send it to the daemon for its own, an extension's or a skill's."""
        own = next((command for command in COMMANDS if command.name == name.casefold()), None)
        if own is not None:
            await self._has_session.wait()  # nearly all commands need a session, and users type during startup
            await own.run(self._ui, args.strip())
            return
        await self._live.wait()
        params = api.RunCommand(session=of(self._ui), name=name, args=args)
        try:
            answer = await self._ui.ask(params, api.CommandResult, timeout_s=slash.COMMAND_S)
        except CallError as error:
            raise self._unknown(name) if error.code == "not_found" else error from error
        if answer.input is not None:
            self._own(answer.input)
        # An extension's answer arrives as an event and is printed by that.
        if answer.extension is None and answer.text:
            self._ui.say(answer.text)

    def _unknown(self, name: str) -> UsageError:
        meant = nearest(name, (choice.name for choice in self.commands))
        return UsageError(
            f"unknown command /{name}" + (f"; did you mean /{meant}?" if meant else "; /help lists the commands")
        )

    async def _shell(self, text: str) -> None:
        """Run a shell command: the model sees the output of `!command`, but not that of `!!command`."""
        for_model = not text.startswith("!!")
        command = text.lstrip("!").strip()
        if not command:
            raise UsageError("!COMMAND runs a shell command and shows its output to the model, !!COMMAND only to you")
        await self._live.wait()
        session = of(self._ui)
        await self._answered(api.Shell(session=session, command=command, context=for_model, request_id=_request_id()))

    async def _learn(self) -> None:
        """Load the commands of the daemon, extensions and skills."""
        params = api.Complete(session=of(self._ui), kind="command", text="")
        found = await self._ui.ask(params, api.Completions)
        ours = {command.name for command in COMMANDS}
        self.learnt = tuple(
            ListChoice(
                each.text, " ".join(filter(None, (each.hint, each.detail))), each.source if each.source != OURS else ""
            )
            for each in found.found
            if each.text not in ours
        )
        self._editor().popup.commands_changed()  # the user may have typed the name before the list was here


def _request_id() -> str:
    """Return a random id by which the daemon recognizes a repeated request, also after a restart."""
    return os.urandom(16).hex()
