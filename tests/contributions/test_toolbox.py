"""Which tools the model may use."""

from types import SimpleNamespace

import pytest

from zotd.contributions.toolbox import check, choose, unknown
from zotd.core.ports import ToolSpec
from zotd.core.records import Settings
from zotd.tools import TOOLS
from zotd.wire.errors import CommandError

OURS = [tool.spec.name for tool in TOOLS]


def extra(name, exposure="direct", description=""):
    """What the choice looks at in an `exthost.tools.ExtensionTool`."""
    return SimpleNamespace(spec=ToolSpec(name, description, {}), exposure=exposure)


EXTRAS = [extra("weather"), extra("deploy", "deferred"), extra("secret", "model-only")]


def settings(**fields):
    return Settings(provider="p", model="m", **fields)


def test_built_in_tools_come_first_and_deferred_ones_wait():
    toolbox = choose(settings(), EXTRAS)
    assert list(toolbox.tools) == [*OURS, "weather", "secret"]
    assert [spec.name for spec in toolbox.specs] == list(toolbox.tools)
    assert list(toolbox.hidden) == ["deploy"]


def test_activated_tools_are_shown():
    toolbox = choose(settings(), EXTRAS, {"deploy", "nobody"})
    assert (list(toolbox.tools)[-3:], toolbox.hidden) == (["weather", "deploy", "secret"], {})


def test_known_tools_keep_their_places_and_new_ones_follow():
    known = [*OURS, "gone", "secret"]
    assert list(choose(settings(), EXTRAS, {"deploy"}, known).tools) == [*OURS, "secret", "weather", "deploy"]
    returned = choose(settings(), [*EXTRAS, extra("gone")], (), known)
    assert list(returned.tools) == [*known, "weather"]
    assert [spec.name for spec in returned.specs] == [*known, "weather"]


def test_a_digest_changes_with_what_the_model_sees_of_a_tool():
    one, same = (dict(choose(settings(), EXTRAS).digests) for _ in range(2))
    assert one == same
    changed = dict(choose(settings(), [extra("weather", description="Better.")]).digests)
    assert {name for name in changed if changed[name] != one.get(name)} == {"weather"}


def test_only_the_named_ones_in_the_order_of_their_names():
    chosen = settings(tools=["weather", "fly", "deploy", "read"])
    toolbox = choose(chosen, EXTRAS)
    assert (list(toolbox.tools), list(toolbox.hidden)) == (["weather", "read"], ["deploy"])
    assert unknown(chosen, toolbox) == ["fly"]


def test_a_run_without_tools_has_none_from_any_source():
    nothing = settings(no_tools=True, tools=["fly"])
    toolbox = choose(nothing, EXTRAS, {"deploy"})
    assert (toolbox.tools, toolbox.specs, toolbox.hidden, unknown(nothing, toolbox)) == ({}, (), {}, [])


def test_an_impossible_name_is_refused():
    with pytest.raises(CommandError, match='unknown tool "fly"; there are bash, edit, '):
        check(settings(tools=["read", "fly"], no_ext=True))
    check(settings(tools=["read"], no_ext=True))
    check(settings(tools=["fly"]))  # an extension may bring it
    check(settings(tools=["fly"], no_ext=True, extensions=["/somewhere"]))
