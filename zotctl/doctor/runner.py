"""Runs all checks in parallel within a time limit and prints the findings.

Each check runs in a daemon thread, so that one that hangs cannot keep the program from exiting.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread

from zotctl import output
from zotctl.doctor import daemon_checks, host_checks, jail_check, store_checks
from zotctl.doctor.findings import STATES, Finding, found
from zotctl.doctor.host_checks import Scene
from zotd.client import colour
from zotd.client.blocking import Json
from zotd.client.errors import ClientError
from zotd.logs.masking import masked
from zotd.sanitize import one_line

CHECK_S = 1.35
"""Time limit for a round of checks, in seconds; detecting a hanging daemon takes 1.3 s."""

Check = Callable[[], Iterator[Finding]]

WITHOUT_DAEMON: Mapping[str, Callable[[Scene], Iterator[Finding]]] = {
    "the directory of the socket": host_checks.socket_directory,
    "the home": host_checks.home,
    "the log": host_checks.log,
    "the configuration": host_checks.configuration,
    "the keys": store_checks.auth_file,
    "the logins": store_checks.logins,
    "the vendors": store_checks.keys,
    "the database": store_checks.database,
    "the linger setting": host_checks.linger,
    "the template process": host_checks.template,
}
"""Checks that need no daemon, by what they check."""


def run(env: Mapping[str, str], *, as_json: bool) -> int:
    """Run all checks, print the findings and return the exit code: 1 if there are any."""
    state, jails, findings = examine(Scene(env))
    if as_json:
        rows = [{"id": one.state.id, "text": masked(one.text), "next": masked(one.next)} for one in findings]
        output.print_json({"v": 1, "state": state, "jail": jails[0] if jails else None, "findings": rows})
    else:
        _print(state, jails, findings)
    return 1 if findings else 0


def examine(scene: Scene) -> tuple[str, list[Json], list[Finding]]:
    """Return the daemon's state, as in `zotctl status`, a row of `jail_check.jail` if it was in time, and the findings.

    They are in the order of `STATES`. Takes at most two rounds of `CHECK_S`; the second one only runs if the daemon answers.
    """
    looked: list[Json] = []
    jails: list[Json] = []
    wanted: dict[str, Check] = {name: partial(check, scene) for name, check in WITHOUT_DAEMON.items()}
    wanted["the jail"] = lambda: jail_check.jail(scene, jails)
    wanted["the daemon"] = lambda: _daemon(scene, looked)
    findings = _all_of(wanted, scene)
    status: Json = looked[0] if looked else {"state": "wedged", "error": ""}
    if "error" not in status:
        provisional = [one for one in findings if one.state.id == "no-key"]
        findings = [one for one in findings if one not in provisional]
        findings += _all_of(_of_daemon(scene, status, asks_for_keys=bool(provisional)), scene)
    order = [state.id for state in STATES]
    return str(status["state"]), jails, sorted(findings, key=lambda one: order.index(one.state.id))


def _daemon(scene: Scene, looked: list[Json]) -> Iterator[Finding]:
    status = daemon_checks.status_of(scene)
    looked.append(status)
    yield from daemon_checks.daemon(scene, status)


def _of_daemon(scene: Scene, status: Json, *, asks_for_keys: bool) -> dict[str, Check]:
    """`asks_for_keys`: no key was found here, but the daemon's environment may have one."""
    wanted: dict[str, Check] = {
        "the WebSocket door": lambda: daemon_checks.door(scene, status),
        "the processes of extensions": lambda: daemon_checks.forks(status),
        "the extensions": lambda: daemon_checks.extensions(scene),
    }
    if asks_for_keys:
        wanted["the daemon's keys"] = lambda: daemon_checks.keys(scene)
    return wanted


def _all_of(wanted: Mapping[str, Check], scene: Scene) -> list[Finding]:
    """Run the checks in parallel; one that exceeds the time limit becomes a finding itself."""
    results: SimpleQueue[tuple[str, list[Finding]]] = SimpleQueue()
    threads = {
        name: Thread(target=_carry_out, args=(name, check, results), name=name, daemon=True)
        for name, check in wanted.items()
    }
    for thread in threads.values():
        thread.start()
    findings: list[Finding] = []
    missing = set(wanted)
    deadline = time.monotonic() + CHECK_S
    while missing:
        try:
            name, ended = results.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            slow = "the check of {} timed out: a disk or a program does not answer"
            return [*findings, *(found("slow-check", slow.format(name), home=scene.home) for name in sorted(missing))]
        missing.remove(name)
        threads[name].join()  # the interpreter can crash if it ends while a thread does
        findings += ended
    return findings


def _carry_out(name: str, check: Check, results: "SimpleQueue[tuple[str, list[Finding]]]") -> None:
    findings: list[Finding] = []
    try:
        findings += check()
    except ClientError:
        pass  # the daemon stopped or hangs; the check `daemon` reports that
    finally:
        results.put((name, findings))


def _print(state: str, jails: list[Json], findings: list[Finding]) -> None:
    print(one_line(f"the daemon is {state}"))
    if not findings:
        print(output.painted("no problems found", colour.GREEN))
    for one in findings:
        print(one_line(f"{one.state.id}: {masked(one.text)}"))
        print(one_line(f"    {masked(one.next)}"))
    for row in jails:
        for line in jail_check.described(row):
            print(one_line(line))
