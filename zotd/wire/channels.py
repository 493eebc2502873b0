"""Commands about messaging channels: who is connected, who may write, and letting somebody in."""

from zotd.wire.base import Frozen


class ChannelInfo(Frozen, frozen=True):
    """A messaging platform."""

    name: str
    extension: str
    """Whose process serves it."""
    state: str
    """`connecting`, `connected` or `retrying`, as the channel says; else its extension's."""
    description: str = ""
    error: str | None = None


class PairedSender(Frozen, frozen=True):
    """Somebody who may write."""

    channel: str
    sender: str
    since: str
    """RFC 3339."""
    session: str | None = None
    """The conversation that messages go to; None: the next message begins one."""
    undelivered: int = 0
    """Messages whose answer has not reached the platform yet."""
    may_approve: bool = False
    """Is asked about calls that need an approval, and decides."""


class WaitingSender(Frozen, frozen=True):
    """Somebody who was told a code, which is not shown here: it proves that who asks for the pairing is who wrote."""

    channel: str
    sender: str
    expires: str


class ChannelList(Frozen, frozen=True, omit_defaults=False):
    """Everything about channels."""

    channels: list[ChannelInfo]
    paired: list[PairedSender]
    waiting: list[WaitingSender]


class ChannelPair(Frozen, frozen=True):
    """Let in who was told this code."""

    code: str
    may_approve: bool = False
    """The sender also decides about calls that need an approval in its conversation."""
    request_id: str | None = None


class ChannelUnpair(Frozen, frozen=True):
    """Let this sender write no more; the conversation stays."""

    channel: str
    sender: str
    request_id: str | None = None
