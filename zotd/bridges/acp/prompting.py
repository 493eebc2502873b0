"""Carries out and cancels prompts and slash commands of an editor."""

from contextlib import suppress

from zotd.bridges.acp.daemon import DaemonLink
from zotd.bridges.acp.editor import Editor
from zotd.bridges.acp.prompts import Entered
from zotd.bridges.acp.session import OpenSession
from zotd.bridges.acp.turns import PromptTurn
from zotd.bridges.acp.updates import Remark
from zotd.client.errors import CallError, ClientError
from zotd.client.runs import Run
from zotd.client.slash import COMMAND_S
from zotd.wire import api
from zotd.wire.acp import AgentMessageChunk, TextBlock


class Prompting:
    """The prompts of one session. Several may be pending; the daemon runs them one after the other."""

    def __init__(self, session: OpenSession, *, daemon: DaemonLink, editor: Editor) -> None:
        """Serve prompts for `session`; none is pending yet."""
        self._session = session
        self._daemon = daemon
        self._editor = editor

    async def prompt(self, entered: Entered) -> str:
        """Submit a prompt; return the stop reason at the end of its run.

        Raises RpcError, or ClientError if the prompt was not accepted or the session not opened.
        """
        turn = PromptTurn()
        # Before it is accepted, so that a cancellation in between finds it.
        self._session.turns.append(turn)
        try:
            await self._session.until_equipped()
            # No event is handled while this is held, so the id of the run is known before its first event.
            async with self._session.order:
                await self._submit(turn, entered)
            if turn.is_cancelled:
                await self._stop([turn])
            if self._session.over is not None:  # the session is no longer followed, so the end would not be seen
                turn.fail(self._session.over)
            async with self._editor.unhurried():
                return await turn.outcome
        finally:
            self._session.turns.remove(turn)

    async def cancel(self) -> None:
        """Cancel the editor's own prompts; without any, the current run of the session."""
        own = [turn for turn in self._session.turns if not turn.outcome.done()]
        for turn in own:
            turn.cancel()
        await self._stop(own)

    async def _submit(self, turn: PromptTurn, entered: Entered) -> None:
        command = entered.command
        if command is None:
            started = await self._daemon.prompt(self._session.info.id, entered.message, list(entered.images))
            turn.accepted(Run(started.input, started.run))
            return
        try:
            await self._run_command(turn, *command)
        except CallError as error:
            # Usually a misspelt command: shown in the conversation, because editors show errors as failures of the agent.
            await self._say(error.sentence)
            turn.end("end_turn")

    async def _run_command(self, turn: PromptTurn, name: str, args: str) -> None:
        params = api.RunCommand(session=self._session.info.id, name=name, args=args)
        done = await self._daemon.ask(params, api.CommandResult, timeout_s=COMMAND_S)
        if done.text is not None:
            await self._say(done.text)
            # The daemon also sends this text as an event, which must not show it a second time.
            is_repeated = done.extension is not None and done.action == "display"
            self._session.displayed_by_command(done.text if is_repeated else None)
        if done.input is None and done.run is None:
            # A command may have loaded or removed extensions, and with them other commands.
            with suppress(ClientError):
                await self._session.tell_commands()
            turn.end("end_turn")
        else:
            turn.accepted(Run(done.input, done.run, starts_now=done.input is None))

    async def _stop(self, turns: list[PromptTurn]) -> None:
        """Stop these prompts. One that is not accepted yet is stopped by `prompt` when it is."""
        accepted = [turn for turn in turns if turn.run is not None and not turn.outcome.done()]
        try:
            running = [turn for turn in accepted if turn.is_running or not await self._is_withdrawn(turn)]
            if running or not turns:
                await self._daemon.ask(api.Mutation(session=self._session.info.id), api.Nothing, command="abort")
        except ClientError as error:
            await self._session.show(Remark("error", f"it could not be cancelled: {error}"))
            for turn in accepted:
                turn.end("cancelled")

    async def _is_withdrawn(self, turn: PromptTurn) -> bool:
        """Withdraw a prompt from the queue; return False if it has just started."""
        assert turn.run is not None
        params = api.QueueWithdraw(session=self._session.info.id, input=turn.run.input_id or "")
        try:
            await self._daemon.ask(params, api.Nothing)
        except CallError:
            return False
        turn.end("cancelled")
        return True

    async def _say(self, text: str) -> None:
        await self._session.show(AgentMessageChunk(TextBlock(text)))
