"""What zot sends to other agents, judged by the official package of ACP (docs/decisions/0102)."""

import json

import pytest
from acp import schema

from zotd.wire import acp, jsonrpc

OLD = acp.OldSession("s", "/work", [])

SENT = [
    (acp.Initialize(1, acp.ClientCapabilities(), acp.Implementation("zot", "0")), schema.InitializeRequest),
    (acp.NewSession("/work", []), schema.NewSessionRequest),
    (OLD, schema.LoadSessionRequest),
    (OLD, schema.ResumeSessionRequest),
    (acp.PromptRequest("s", [acp.TextBlock("hi"), acp.ImageBlock("aGk=", "image/png")]), schema.PromptRequest),
    (acp.SessionParams("s"), schema.CancelNotification),
]


def common(sent, understood):
    """What was understood, without the defaults that the package has added."""
    if isinstance(sent, dict):
        return {key: common(value, understood.get(key)) for key, value in sent.items()}
    return understood


@pytest.mark.parametrize(("frame", "model"), SENT, ids=lambda one: getattr(one, "__name__", ""))
def test_the_package_understands_what_is_sent(frame, model):
    sent = json.loads(jsonrpc.request_message(1, "any", frame))["params"]
    understood = model.model_validate(sent).model_dump(mode="json", by_alias=True, exclude_none=True)
    assert common(sent, understood) == sent


@pytest.mark.parametrize("outcome", [acp.PermissionOutcome("cancelled"), acp.PermissionOutcome("selected", "yes")])
def test_the_package_understands_how_a_question_is_answered(outcome):
    sent = json.loads(jsonrpc.result_message(1, acp.Permission(outcome)))["result"]
    found = schema.RequestPermissionResponse.model_validate(sent)
    assert found.outcome.outcome == outcome.outcome
