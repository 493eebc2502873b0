"""Interface of the messaging channels for the commands about them."""

from typing import Protocol

from zotd.wire.channels import ChannelList, PairedSender


class ChannelDesk(Protocol):
    """The channels of a daemon. Methods raise CommandError for the client, StorageError if nothing was changed."""

    def listing(self) -> ChannelList:
        """Return the channels with their state, paired senders and pending pairings."""
        ...

    async def pair(self, code: str, *, may_approve: bool = False) -> PairedSender:
        """Allow the sender that was given `code` to write, and optionally to approve calls; durable when it returns."""
        ...

    async def unpair(self, channel: str, sender: str) -> None:
        """Remove the sender's permission to write; durable when it returns."""
        ...
