"""When a workspace's code is asked about, however its looks overlap."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from zotd.contributions import discovery
from zotd.contributions.discovery import ExtensionSources
from zotd.contributions.scope import ExtensionScope, HostConfig
from zotd.contributions.trust import WorkspaceTrust
from zotd.exthost.host import ExtensionTimeouts
from zotd.exthost.surroundings import Surroundings
from zotd.store.trust import Trust
from zotd.wire.events import Event, TrustRequired

MODULE = Path(".zot/extensions/tools/count.py")


@pytest.fixture
def workspace(tmp_path):
    """A trusted workspace without code: its directory, trust, scope, events, and what is called after each discovery."""
    home, cwd = tmp_path / "home", tmp_path / "work"
    told: list[Event] = []
    afterwards: list[Callable[[], None]] = []
    home.mkdir()
    cwd.mkdir()
    trust = Trust(home)
    trust.grant(cwd)
    trusting = WorkspaceTrust(trust, str(cwd))

    def discover():
        is_trusted = trusting.look()
        found = discovery.of_workspace(ExtensionSources(home), cwd, is_trusted=is_trusted, trusting=trusting)
        while afterwards:
            afterwards.pop()()
        return found

    scope = ExtensionScope(
        HostConfig(told.append, partial(pytest.fail, "no extension runs"), ExtensionTimeouts()),
        Surroundings(str(cwd), home, {}),
        discover,
        trusting=trusting,
    )
    return cwd, trusting, scope, told, afterwards


def asked(told):
    """What people were asked about, each time."""
    return [event.items for event in told if isinstance(event, TrustRequired)]


def write_module(cwd):
    (cwd / MODULE).parent.mkdir(parents=True)
    (cwd / MODULE).write_text('async def run() -> str:\n    """Count."""\n    return "one"\n')


async def test_code_that_another_look_has_found_first_is_asked_about(workspace):
    """The directory and the file in it are watched separately, so both looks may find the same new file."""
    cwd, trusting, scope, told, _ = workspace
    await scope.start()
    write_module(cwd)
    trusting.look()
    await scope.recheck()
    assert asked(told) == [[str(MODULE)]]
    await scope.recheck()
    assert len(asked(told)) == 1, "it is asked once"
    (cwd / MODULE).rename(cwd / "aside.py")
    await scope.recheck()
    (cwd / "aside.py").rename(cwd / MODULE)
    await scope.recheck()
    assert len(asked(told)) == 2, "the code was away, and is new again"
    await scope.stop()


async def test_code_that_changes_during_a_look_is_looked_at_afterwards(workspace):
    cwd, _, scope, told, afterwards = workspace
    afterwards.append(partial(write_module, cwd))
    await scope.recheck()  # the watch reports the change while the first look is under way
    assert told == []
    await scope.start()
    assert asked(told) == [[str(MODULE)]]
    await scope.stop()
