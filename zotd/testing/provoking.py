"""Bringing the faults of `zotd.testing.misbehaviours` to light in a daemon: through a session, as its clients do it.

    install(home, bad.name, bad.argv)                    before the session is created
    ModelServer(partial(answer, bad))                    the session's model
    told = await provoke(client, session, bad)           `client` follows the session
"""

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec

from zotd.testing.misbehaviours import Misbehaviour, Probe
from zotd.testing.model_server import Received
from zotd.testing.script import Answer, Call, calls, text
from zotd.testing.wire_client import Json, WireClient
from zotd.wire.content import Image, Text

HEAVY_ARGS = "x" * 3_500_000
"""Of a command; a frame may have 4 MiB."""

HEAVY_COMMANDS = 5
"""Together more than the 16 MiB that may wait for an extension to read them."""


def install(home: Path, name: str, argv: Sequence[str]) -> Path:
    """Install an extension in `$ZOT_HOME`, for all workspaces; its directory."""
    directory = home / "extensions" / name
    directory.mkdir(parents=True)
    manifest = {"name": name, "exec": argv[0], "args": list(argv[1:])}
    (directory / "extension.json").write_text(json.dumps(manifest), encoding="utf-8")
    return directory


def answer(bad: Misbehaviour, received: Received) -> Answer:
    """What the model says: it calls a tool once for each prompt, the bad one's or, for guards, one of zot's."""
    if received.messages[-1]["role"] == "tool":
        return text("done")
    return calls(Call("glob", {"pattern": "*"}) if bad.probe is Probe.GUARD else Call(bad.name, {"city": "Berlin"}))


async def provoke(client: WireClient, session: str, bad: Misbehaviour) -> str:
    """Bring its fault to light; what the one who asked is told about it, which may be nothing."""
    match bad.probe:
        case Probe.CALL | Probe.GUARD:
            return await _run(client, session)
        case Probe.COMMAND:
            return _sentence(await client.answer("run_command", session=session, name=bad.name))
        case Probe.EVENTS:
            heavy = {"session": session, "name": bad.name, "args": HEAVY_ARGS}
            sent = [client.send("run_command", **heavy) for _ in range(HEAVY_COMMANDS)]
            return _sentence(await client.answer_to(sent[-1]))
        case Probe.NONE:
            return ""


async def _run(client: WireClient, session: str) -> str:
    """A prompt; the results of its calls, and what is noted about guards."""
    await client.ask("prompt", session=session, message="go")
    events = await client.until("done")
    said = [_words(event["content"]) for event in events if event["type"] == "tool_result"]
    return "\n".join(said + [str(event["text"]) for event in events if event["type"] == "guard_note"])


def _words(content: object) -> str:
    return "\n".join(block.text for block in msgspec.convert(content, list[Text | Image]) if isinstance(block, Text))


def _sentence(response: Json) -> str:
    return str(response.get("error") or "")
