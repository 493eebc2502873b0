"""What the API modules share; the only part of `zotd.providers` that they import."""

from zotd.providers.shared.failures import answered, cut, foreign, reported, silent, unreachable
from zotd.providers.shared.streaming import parts
from zotd.providers.shared.transcript import EncodedTranscript, Preamble, parameters
from zotd.providers.shared.vendors import (
    CONNECT_S,
    DRAIN_S,
    NO_KEY,
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
    "NO_KEY",
    "SILENCE_S",
    "Access",
    "Destination",
    "EncodedTranscript",
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
    "unreachable",
]
