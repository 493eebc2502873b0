"""Questions to an extension, each with a check of its answer."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from zotd.exthost.calls import Answer, ExtensionCallError
from zotd.exthost.content import NO_CONTENT, outcome_of
from zotd.exthost.contributions import Registrations
from zotd.exthost.host import ExtensionTimeouts
from zotd.exthost.offers import ACTIONS
from zotd.exthost.validation import questions
from zotd.exthost.validation.conversation import ProbedProcess
from zotd.wire import ext
from zotd.wire.content import Text

SHOWN_CHARS = 120
"""Longest excerpt of arguments and results in a sentence."""


@dataclass(frozen=True, slots=True)
class Calling:
    """Permission to call tools, which do real work."""

    tool: str = ""
    """The only tool to call. Empty: call all tools and commands with invalid arguments."""
    args: Mapping[str, object] = field(default_factory=dict)
    """Arguments for that tool, whose call must then succeed."""


@dataclass(frozen=True, slots=True)
class ExpectedAnswer:
    """A request that the extension has to answer."""

    about: str
    kind: type[Answer]
    frame: questions.Fields
    limit_s: float
    fault: Callable[[Answer], str | None]
    """Returns the fault of an answer, as a phrase that continues the extension's name, or None."""

    async def put(self, talk: ProbedProcess) -> str | None:
        """Ask; return a sentence if the answer is missing or invalid."""
        try:
            fault = self.fault(await talk.ask(self.kind, self.frame, self.limit_s))
        except ExtensionCallError as error:
            fault = str(error)
        return fault and f"{self.about}: it {fault}"


def about_guards(registrations: Registrations, limits: ExtensionTimeouts, cwd: str) -> list[ExpectedAnswer]:
    """Build a harmless question about each event that the extension intercepts."""
    return [
        ExpectedAnswer(
            f"asked about `{event}`",
            ext.EventInterceptResponse,
            questions.guard_question(event, cwd),
            limits.intercept_s,
            _verdict_fault,
        )
        for event in sorted(registrations.intercepts)
    ]


def about_everything(registrations: Registrations, limits: ExtensionTimeouts) -> list[ExpectedAnswer]:
    """Build calls of every tool and command with invalid arguments, except tools that wait for a person."""
    # An interactive tool would wait for a person.
    tools = (tool for tool in registrations.tools.values() if not tool.interactive)
    calls = [
        _call(tool.name, args, limits, _content_fault)
        for tool in tools
        for args in questions.senseless_arguments(tool.schema)
    ]
    return calls + [
        ExpectedAnswer(f"/{name}", ext.CommandResponse, questions.command(name), limits.command_s, _response_fault)
        for name in registrations.commands
    ]


def about_one(calling: Calling, limits: ExtensionTimeouts) -> ExpectedAnswer:
    """Build a call that has to succeed."""
    return _call(calling.tool, calling.args, limits, lambda answer: _content_fault(answer) or _failure(answer))


def _call(
    tool: str, args: Mapping[str, object], limits: ExtensionTimeouts, fault: Callable[[Answer], str | None]
) -> ExpectedAnswer:
    about = f"{tool} {json.dumps(args)[:SHOWN_CHARS]}"
    return ExpectedAnswer(about, ext.ToolResult, questions.tool_call(tool, args), limits.tool_s, fault)


def _verdict_fault(answer: Answer) -> str | None:
    assert isinstance(answer, ext.EventInterceptResponse)
    if answer.modified_args is not None and not isinstance(answer.modified_args, dict):
        return "answered with `modified_args` that are not a JSON object and are ignored"
    return None


def _response_fault(answer: Answer) -> str | None:
    assert isinstance(answer, ext.CommandResponse)
    if not answer.error and answer.action not in ACTIONS:
        return f'answered with the unknown action "{answer.action[:SHOWN_CHARS]}"'
    return None


def _content_fault(answer: Answer) -> str | None:
    """Return the first block that the host would replace by a text of its own."""
    assert isinstance(answer, ext.ToolResult)
    for replacement in _replacements(answer.content):
        return f"answered with a block that is shown as {replacement}"
    return None


def _replacements(blocks: Iterable[object]) -> Iterator[str]:
    for raw in blocks:
        # The same conversion as in the daemon, so that both have one opinion about a block.
        [shown] = outcome_of(ext.ToolResult("", (raw,)), "it").content
        text = raw.get("text") if isinstance(raw, dict) else None
        if isinstance(shown, Text) and shown.text != text and (shown.text, text) != (NO_CONTENT, ""):
            yield shown.text


def _failure(answer: Answer) -> str | None:
    assert isinstance(answer, ext.ToolResult)
    outcome = outcome_of(answer, "it")
    text = next((block.text for block in outcome.content if isinstance(block, Text)), "")
    return f"failed: {text[:SHOWN_CHARS]}" if outcome.is_error else None
