"""Bringing the faults of `zotd.testing.misbehaviours` to light in a daemon: through a session, as its clients do it.

install(home, bad.name, bad.argv)                    before there is a session in the workspace
ModelServer(partial(answer, bad))                    the session's model
witness = await Witness.of(bad, one_client)          before the session, too: it sees the extensions start
said = await provoke(bad, another_client, session)   a client that follows the session
sentence = await witness.told()
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import msgspec

from zotd.testing.misbehaviours import PROGRAM, Misbehaviour, Probe
from zotd.testing.model_server import Received
from zotd.testing.script import Answer, CallPart, calls, text
from zotd.testing.wire_client import Json, WireClient
from zotd.wire.content import Image, Text

GOOD: Sequence[str] = (sys.executable, "-I", "-S", PROGRAM, "good", "good")
"""An extension named `good` that does nothing wrong; its command `good` displays its arguments."""

HEAVY_ARGS = "x" * 3_500_000
"""Arguments of a command; a frame may have 4 MiB."""

HEAVY_COMMANDS = 5
"""Together more than the 16 MiB that may wait for an extension to read them."""


def install(home: Path, name: str, argv: Sequence[str]) -> None:
    """Install an extension in `$ZOT_HOME`, for all workspaces."""
    directory = home / "extensions" / name
    directory.mkdir(parents=True)
    manifest = {"name": name, "exec": argv[0], "args": list(argv[1:])}
    (directory / "extension.json").write_text(json.dumps(manifest), encoding="utf-8")


def answer(bad: Misbehaviour, received: Received) -> Answer:
    """What the model says: for each prompt it calls one tool, that of the bad one or, to ask a guard, one of zot's."""
    if received.messages[-1]["role"] == "tool":
        return text("done")
    return calls(
        CallPart("glob", {"pattern": "*"}) if bad.probe is Probe.GUARD else CallPart(bad.name, {"city": "Berlin"})
    )


async def provoke(bad: Misbehaviour, client: WireClient, session: str) -> str:
    """Bring its fault to light; what the one who did it is told, which may be nothing."""
    match bad.probe:
        case Probe.CALL | Probe.GUARD:
            return await _run(client, session)
        case Probe.COMMAND:
            return _error(await client.answer("run_command", session=session, name=bad.name))
        case Probe.EVENTS:
            heavy = {"session": session, "name": bad.name, "args": HEAVY_ARGS}
            sent = [client.send("run_command", **heavy) for _ in range(HEAVY_COMMANDS)]
            return _error(await client.answer_to(sent[-1]))
        case Probe.NONE:
            return ""


class Witness:
    """Somebody who hears of the states of extensions, and reads the log of the bad one."""

    def __init__(self, bad: Misbehaviour, client: WireClient) -> None:
        """Use `of`."""
        self._bad = bad
        self._client = client
        self._sentences: list[str] = []

    @classmethod
    async def of(cls, bad: Misbehaviour, client: WireClient) -> Self:
        """Begin, with a connection that is used for nothing else."""
        await client.ask("subscribe", topics=["extensions"])
        return cls(bad, client)

    async def until_good_is_ready(self, session: str) -> None:
        """Have the session's extensions started, read the log from its beginning, and wait for the good one."""
        await self._client.ask("ext.list", session=session)
        page = await self._client.ask("ext.logs", session=session, name=self._bad.name, follow=True)
        self._hear(page["text"])
        while not await self._good_is_ready():
            pass

    async def told(self) -> str:
        """Wait until the reason for its state, its log or the doctor says what it should; that sentence."""
        while True:
            findings = msgspec.convert((await self._client.ask("ext.doctor"))["findings"], list[dict[str, str]])
            found = [one["text"] for one in findings if one["extension"] == self._bad.name]
            for sentence in [*self._sentences, *found]:
                if self._bad.told in sentence:
                    return sentence
            await self._good_is_ready()

    async def _good_is_ready(self) -> bool:
        """Take the next event; whether it says so."""
        event = await self._client.event()
        if event["extension"] == self._bad.name:
            self._hear(event.get("reason", event.get("text", "")))
        return (event["extension"], event.get("state")) == ("good", "ready")

    def _hear(self, words: object) -> None:
        """The host's own lines in a log begin with a mark."""
        self._sentences += [line.removeprefix("[zot] ") for line in str(words).splitlines()]


async def _run(client: WireClient, session: str) -> str:
    """A prompt; the results of its calls, and what is noted about guards."""
    await client.ask("prompt", session=session, message="go")
    events = await client.until("done")
    said = [_words(event["content"]) for event in events if event["type"] == "tool_result"]
    return "\n".join(said + [str(event["text"]) for event in events if event["type"] == "guard_note"])


def _words(content: object) -> str:
    return "\n".join(block.text for block in msgspec.convert(content, list[Text | Image]) if isinstance(block, Text))


def _error(response: Json) -> str:
    return str(response.get("error") or "")
