"""Commands about messaging channels: their state, their senders, and pairing."""

from zotd.wire.base import Frozen


class ChannelInfo(Frozen, frozen=True):
    """A messaging platform and the state of its connection."""

    name: str
    extension: str
    """The extension that serves it."""
    state: str
    """`connecting`, `connected` or `retrying` as reported by the channel; else the state of its extension."""
    description: str = ""
    error: str | None = None


class PairedSender(Frozen, frozen=True):
    """A sender that may write."""

    channel: str
    sender: str
    since: str
    """RFC 3339."""
    session: str | None = None
    """The session that receives its messages; null: the next message creates one."""
    undelivered: int = 0
    """Messages whose reply has not been delivered to the platform yet."""
    may_approve: bool = False
    """Whether it may decide approval requests."""


class WaitingSender(Frozen, frozen=True):
    """A sender that was given a pairing code, which is not shown: it proves that the sender wrote first."""

    channel: str
    sender: str
    expires: str


class ChannelList(Frozen, frozen=True, omit_defaults=False):
    """The channels, the senders that may write, and those with a pairing code."""

    channels: list[ChannelInfo]
    paired: list[PairedSender]
    waiting: list[WaitingSender]


class ChannelPair(Frozen, frozen=True):
    """Allow the sender that was given this code to write."""

    code: str
    may_approve: bool = False
    """The sender may also decide approval requests of its conversation."""
    request_id: str | None = None


class ChannelUnpair(Frozen, frozen=True):
    """Remove a sender's permission to write; its session stays."""

    channel: str
    sender: str
    request_id: str | None = None
