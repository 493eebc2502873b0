"""Stands in for a model that cannot be used."""

from collections.abc import AsyncGenerator, Sequence

from zotd.core.budget import FREE, Rates
from zotd.core.ports import ModelRequest
from zotd.core.reply import Part
from zotd.core.retry import Failure, ModelError, RetryPolicy
from zotd.runs.model_ladder import OnlyModel, OpenedModel
from zotd.wire.content import Tokens


class Unavailable:
    """A model that could not be opened; its first request says why."""

    context_window = 0

    def __init__(self, error: ModelError) -> None:
        self.error = error
        """Why."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[Part], None]:
        """Raise the ModelError that kept the model from being opened."""
        del request
        raise self.error

    def price(self, tokens: Tokens) -> Tokens:
        """Nothing was bought."""
        return tokens

    @property
    def rates(self) -> Rates | None:
        """Nothing can be bought."""
        return FREE


NOT_OPENED = OnlyModel(
    OpenedModel("", "", Unavailable(ModelError(Failure.INTERNAL, "the model was not opened"))), RetryPolicy()
)
"""Stands in a `RunContext` until its run begins."""
