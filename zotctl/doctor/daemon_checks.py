"""Checks that ask the daemon. A daemon that does not answer is reported by `daemon` alone."""

import os
import shlex
from collections.abc import Iterator

from zotctl import status_probe
from zotctl.doctor.findings import Finding, found
from zotctl.doctor.host_checks import Scene
from zotd import config
from zotd.client.blocking import Connection, Json, open_socket
from zotd.client.fields import children, strings, text
from zotd.client.respawn_limit import RespawnLimit

CONNECT_S = 0.3
ANSWER_S = 1.0
"""Time limits in seconds, so that `zotctl doctor` takes less than 3 s."""

STATES = {
    "stale": "stale-socket",
    "listener_lost": "listener-lost",
    "wedged": "wedged",
    "mismatched": "version-mismatch",
    "unmanaged": "unmanaged",
    "unreachable": "unreachable",
}
"""States of `zotctl status` that are problems, and the findings for them."""

FORKS = "without their template process"
"""Part of the warning about extensions that are not forked."""


def status_of(scene: Scene) -> Json:
    """Return the status as `zotctl status --json` prints it."""
    return status_probe.probe(scene.socket, scene.env, lambda: _connection(scene), ANSWER_S)


def daemon(scene: Scene, status: Json) -> Iterator[Finding]:
    """Check that the daemon can be used, or started."""
    state = str(status["state"])
    if state in STATES:
        said = [*strings(status, "warnings"), text(status, "error")]
        command = f"ls -l {scene.socket}" if state == "unreachable" else text(status, "next")
        yield found(STATES[state], next(line for line in reversed(said) if line), command)
    if state in {"stopped", "stale"}:
        complaint = RespawnLimit(scene.socket, scene.env).complaint()
        if complaint is not None:
            yield found("gave-up", complaint)


def door(scene: Scene, status: Json) -> Iterator[Finding]:
    """Check that the WebSocket listener is open if it is configured."""
    try:
        listen = config.load(scene.home / "config.toml", scene.env).config.websocket.listen
    except config.ConfigError:
        return
    if listen is not None and status["websocket"] is None:
        said = [line for line in strings(status, "warnings") if "websocket" in line.lower()]
        yield found("port-taken", (said or [f"websocket.listen is {listen}, but the daemon does not listen there"])[0])


def forks(status: Json) -> Iterator[Finding]:
    """Check that the daemon can fork its extensions; `zotd.template.forks.Forks.problem` is the sentence."""
    yield from (found("extensions-cold", line) for line in strings(status, "warnings") if FORKS in line)


def extensions(scene: Scene) -> Iterator[Finding]:
    """Check the extensions of this directory, as `zotctl ext doctor` does; disabled ones are skipped."""
    cwd = os.path.realpath(".")
    with _connection(scene) as connection:
        answer = connection.call("ext.doctor", cwd=cwd, timeout_s=ANSWER_S)
    for finding in children(answer, "findings"):
        name, words = text(finding, "extension"), text(finding, "text")
        match text(finding, "kind"):
            case "disabled":
                continue
            case "untrusted":
                yield found("code-untrusted", words, cwd=shlex.quote(text(finding, "cwd") or cwd))
            case "doubtful":
                yield found("extension-doubtful", f"{name}: {words}", name=name)
            case _:
                command = None if name else "zotctl ext doctor"
                yield found("extension-failing", f"{name}: {words}" if name else words, command, name=name)


def keys(scene: Scene) -> Iterator[Finding]:
    """Check that the daemon has an API key, possibly from its own environment."""
    with _connection(scene) as connection:
        listed = children(connection.call("auth.list", timeout_s=ANSWER_S), "providers")
    if not any(one.get("variables") and one.get("source") for one in listed):
        yield found("no-key", "no API key is set for any model vendor, neither here nor in the daemon")


def _connection(scene: Scene) -> Connection:
    return Connection(open_socket(scene.socket, CONNECT_S))
