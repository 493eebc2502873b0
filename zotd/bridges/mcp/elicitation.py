"""Questions of a server to the user (elicitation), passed to the host as questions of the call that is running.

Answers come as a person has typed them: they are converted to what the schema wants, and asked for again if that fails.
"""

from collections.abc import Mapping
from typing import Literal

from mcp.client.session import ClientRequestContext
from mcp.types import ElicitRequestFormParams, ElicitRequestParams, ElicitRequestURLParams, ElicitResult

from zotd.bridges.mcp.host_questions import HostQuestions
from zotd.bridges.mcp.running_calls import RunningCalls
from zotd.sdk.pipe import Frame

TRIES = 3
"""How many times a person is asked for answers that fit."""

_Value = str | int | float | bool | list[str] | None


class Elicitation:
    """The questions of one server."""

    def __init__(self, questions: HostQuestions, calls: RunningCalls) -> None:
        """`questions` are those to the host, `calls` those that run in the server."""
        self._questions = questions
        self._calls = calls

    async def ask(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        """Answer a question of the server (the package's `ElicitationFnT`)."""
        call = self._calls.asking(context)
        if call is None or not self._questions.may_ask(call):
            return ElicitResult(action="cancel")
        match params:
            case ElicitRequestURLParams():
                answer = await self._asked(call, f"{params.message}\nOpen this page: {params.url}", {}, "")
                return ElicitResult(action=_action(answer))
            case ElicitRequestFormParams():
                return await self._form(call, params.message, _properties(params.requested_schema))

    async def _form(self, call: str, message: str, properties: Mapping[str, Mapping[str, object]]) -> ElicitResult:
        values: dict[str, object] = {name: one.get("default", "") for name, one in properties.items()}
        about = "\n".join(_line(name, one) for name, one in properties.items())
        said = message
        for _ in range(TRIES):
            answer = await self._asked(call, said, values, about)
            if _action(answer) != "accept":
                return ElicitResult(action=_action(answer))
            given = answer.get("values")
            values = {**values, **given} if isinstance(given, dict) else values
            try:
                content = {name: _converted(name, one, values.get(name)) for name, one in properties.items()}
            except ValueError as error:
                said = f"{message}\n({error})"
            else:
                found: dict[str, _Value] = {name: value for name, value in content.items() if value is not None}
                return ElicitResult(action="accept", content=found)
        return ElicitResult(action="cancel")

    async def _asked(self, call: str, message: str, fields: Mapping[str, object], about: str) -> Frame:
        question = {"message": message, "fields": fields, "about": about}
        return await self._questions.ask(call, "ask_user", question, waiting="waiting for an answer")


def _action(answer: Frame) -> Literal["accept", "decline", "cancel"]:
    match answer.get("action"):
        case "accept":
            return "accept"
        case "decline":
            return "decline"
        case _:
            return "cancel"


def _properties(schema: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    """Return the wanted answers by name, each with `required`."""
    found, required = schema.get("properties"), schema.get("required")
    names = required if isinstance(required, list) else []
    properties = found if isinstance(found, dict) else {}
    return {str(name): {**one, "required": name in names} for name, one in properties.items() if isinstance(one, dict)}


def _line(name: str, wanted: Mapping[str, object]) -> str:
    about = ", ".join(str(one) for one in (wanted.get("title"), wanted.get("description")) if one)
    choices = _choices(wanted)
    kind = f"one of {', '.join(choices)}" if choices else str(wanted.get("type", "text"))
    return f"{name} ({kind}{'' if wanted['required'] else ', optional'}){f': {about}' if about else ''}"


def _choices(wanted: Mapping[str, object]) -> list[str]:
    listed = wanted.get("enum")
    if isinstance(listed, list):
        return [str(one) for one in listed]
    titled = wanted.get("oneOf")
    return [str(one["const"]) for one in titled if "const" in one] if isinstance(titled, list) else []


def _converted(name: str, wanted: Mapping[str, object], value: object) -> _Value:
    """Return the answer as the server wants it; None: there is none.

    Raises:
        ValueError: it does not fit, or is missing; a sentence for the person.
    """
    if value is None or value == "":
        if wanted["required"]:
            raise ValueError(f"{name} is missing")
        return None
    choices = _choices(wanted)
    if choices and str(value) not in choices:
        raise ValueError(f"{name} has to be one of {', '.join(choices)}")
    match wanted.get("type"):
        case "boolean":
            return _boolean(name, value)
        case "integer" | "number" as kind:
            return _number(name, kind, value)
        case "array":
            return [str(one) for one in value] if isinstance(value, list) else [str(value)]
        case _:
            return str(value)


def _boolean(name: str, value: object) -> bool:
    words = {"true": True, "yes": True, "false": False, "no": False}
    found = value if isinstance(value, bool) else words.get(str(value).casefold())
    if found is None:
        raise ValueError(f"{name} has to be true or false")
    return found


def _number(name: str, kind: str, value: object) -> int | float:
    try:
        return int(str(value)) if kind == "integer" else float(str(value))
    except ValueError as error:
        raise ValueError(f"{name} has to be {'a whole number' if kind == 'integer' else 'a number'}") from error
