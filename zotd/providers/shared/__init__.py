"""What the API modules share; the only part of `zotd.providers` that they import."""

from zotd.providers.shared.failures import answered, cut, foreign, reported, silent, too_large, unreachable
from zotd.providers.shared.limits import EVENT_BYTES
from zotd.providers.shared.sse import Events
from zotd.providers.shared.streaming import parts
from zotd.providers.shared.transcript import EncodedTranscript, Preamble, parameters
from zotd.providers.shared.vendors import (
    CONNECT_S,
    DRAIN_S,
    SILENCE_S,
    Access,
    Destination,
    KeyHeader,
    Target,
    Vendor,
    VendorClient,
    VendorConversation,
)

__all__ = [
    "CONNECT_S",
    "DRAIN_S",
    "EVENT_BYTES",
    "SILENCE_S",
    "Access",
    "Destination",
    "EncodedTranscript",
    "Events",
    "KeyHeader",
    "Preamble",
    "Target",
    "Vendor",
    "VendorClient",
    "VendorConversation",
    "answered",
    "cut",
    "foreign",
    "parameters",
    "parts",
    "reported",
    "silent",
    "too_large",
    "unreachable",
]
