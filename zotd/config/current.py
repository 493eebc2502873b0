"""The configuration that holds now, in one place for everything that reads it."""

from zotd.config import Config


class CurrentConfig:
    """Holds one `Config`; calling it returns that.

    Readers call it whenever they need a value and keep no copy, so `swap` reaches all of them at once. A run reads its
    values when it begins and keeps them to its end.
    """

    def __init__(self, config: Config) -> None:
        """`config` holds until the first `swap`."""
        self._config = config

    def __call__(self) -> Config:
        """The configuration that holds now."""
        return self._config

    def swap(self, config: Config) -> None:
        """Replace the whole configuration."""
        self._config = config
