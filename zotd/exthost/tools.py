"""Adapts a tool of an extension to `core.ports.Tool`."""

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from zotd.core.ports import Ancestor, Replay, ToolContext, ToolOutcome, ToolSpec
from zotd.core.registry import exposure_of, full_schema, replay_of
from zotd.exthost.calls import CallTimeoutError, ExtensionCallError
from zotd.exthost.content import outcome_of, state_of
from zotd.exthost.extension import SupervisedExtension
from zotd.exthost.questions import Questions
from zotd.exthost.surroundings import About
from zotd.wire import ext


class ExtensionTool:
    """A tool of an extension; satisfies `core.ports.Tool`.

    It stays valid over crashes and reloads: a call goes to the process that serves at that time.
    """

    def __init__(
        self,
        extension: SupervisedExtension,
        tool: ext.RegisterTool,
        *,
        limit_s: float,
        activate: Callable[[str, Sequence[str]], None],
    ) -> None:
        """Adapt `tool`. `limit_s` limits a call unless the tool is interactive.

        `activate` is called with a session and the names of deferred tools that a result activates there.
        """
        self.spec = ToolSpec(tool.name, tool.description, full_schema(tool.schema))
        self.parallel = tool.parallel
        self.replay: Replay = replay_of(tool)
        self.exposure = exposure_of(tool)
        """`direct`, `deferred` (not shown until activated) or `model-only`."""
        self.is_interactive = tool.interactive
        self.extension = extension.name
        self._extension = extension
        self._limit_s = None if tool.interactive else extension.manifest.call_limit_s or limit_s
        self._activate = activate

    async def run(self, args: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """Call the extension. If cancelled, it is notified, provided that it announced `tool_cancel`."""
        peer = await self._extension.available(session=context.session)
        if peer is None:
            return ToolOutcome.error(f"{self._extension.condition}; {self.spec.name} cannot be called now")
        # A `submit` without a session, even after the result, belongs to the session of the latest call.

        cwd = About(context.session, context.cwd).cwd_for(self._extension.manifest)

        def call(key: str) -> ext.ToolCall:
            if context.check_lease is not None and self.replay is not Replay.SAFE:
                context.check_lease()  # the next thing that happens is that the frame is sent
            return ext.ToolCall(
                key,
                self.spec.name,
                dict(args),
                session_id=context.session,
                operation_key=context.operation_key,
                reconcile=context.reconcile,
                cwd=cwd,
                traceparent=context.traceparent or None,
            )

        questions = Questions(peer.send, context, by=self.extension)
        try:
            answer = await questions.during(
                peer.call(
                    ext.ToolResult,
                    call,
                    limit_s=self._limit_s,
                    session=context.session,
                    progress=context.progress,
                    # Lets the host recognise calls that the extension makes during this one, and refuse loops.
                    lineage=(*context.lineage, Ancestor(self.spec.name, context.call_id)),
                    cwd=cwd,
                    asked=questions.ask,
                )
            )
        except CallTimeoutError as error:
            if self._extension.manifest.restarts_when_stuck:
                # Without waiting: the error goes to the model at once, and later calls wait for the new process.
                self._extension.unstick()
            return ToolOutcome.error(f"{self.spec.name} failed: {self.extension} {error}")
        except ExtensionCallError as error:
            return ToolOutcome.error(f"{self.spec.name} failed: {self.extension} {error}")
        assert isinstance(answer, ext.ToolResult)
        if answer.activate_tools:
            self._activate(context.session, answer.activate_tools)
        outcome = outcome_of(answer, self.extension)
        return replace(outcome, state=state_of(answer)) if context.reconcile else outcome
