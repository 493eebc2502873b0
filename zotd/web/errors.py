"""The error of this package."""


class WebError(Exception):
    """A page cannot be had, or cannot be shown; the message is a sentence for the model without a full stop."""


class SearchRefusedError(WebError):
    """A search was not made, so it costs nothing."""
