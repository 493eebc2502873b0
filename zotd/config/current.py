"""The configuration that holds now, in one place for everything that reads it."""

from zotd.config import Config


class CurrentConfig:
    """Holds one `Config`.

    Readers look at `value` whenever they need a setting and keep no copy, so `swap` reaches all of them at once. A run
    reads its settings when it begins and keeps them to its end.
    """

    def __init__(self, config: Config) -> None:
        """`config` holds until the first `swap`."""
        self.value = config
        """The configuration that holds now. Replaced by `swap` only."""

    def swap(self, config: Config) -> None:
        """Replace the whole configuration."""
        self.value = config
