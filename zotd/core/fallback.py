"""Which model a session asks instead of its own, as its records say."""

from zotd.core.records import ModelSwitch, Settings


class CurrentFallback:
    """The last switch of a session, while it holds.

    It is over when requests go to the own model again, and when the settings name another one.
    """

    def __init__(self) -> None:
        self._switch: ModelSwitch | None = None

    @property
    def label(self) -> str:
        """The model that is asked, as `provider/model`; empty: the session's own."""
        return "" if self._switch is None else self._switch.after

    def apply(self, record: ModelSwitch) -> None:
        """Requests go to another model from here on."""
        self._switch = None if record.after == record.own else record

    def configured(self, settings: Settings) -> None:
        """The session has these settings now."""
        if self._switch is not None and self._switch.own != settings.label:
            self._switch = None
