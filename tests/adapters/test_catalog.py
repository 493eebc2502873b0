"""The known adapters, and those of the configuration."""

from zotd.adapters.catalog import ADAPTERS, known_adapters
from zotd.config.sections import AdapterSection


def test_names_are_unique():
    assert len({one.name for one in ADAPTERS}) == len(ADAPTERS)


def test_the_configuration_changes_a_known_adapter_and_keeps_the_rest():
    claude = known_adapters({"claude": AdapterSection(command=("npx", "it"))})["claude"]
    assert (claude.command, claude.title) == (("npx", "it"), "Claude Code")


def test_the_configuration_adds_an_adapter():
    mine = known_adapters({"mine": AdapterSection(command=("my-agent", "--acp"), key_env=("MY_KEY",))})["mine"]
    assert (mine.title, mine.command, mine.keys) == ("mine", ("my-agent", "--acp"), ("MY_KEY",))
