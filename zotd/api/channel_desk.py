"""What the commands about messaging channels need of whoever looks after those."""

from typing import Protocol

from zotd.wire.channels import ChannelList, PairedSender


class ChannelDesk(Protocol):
    """The channels of a daemon. Methods raise CommandError for the sender, StorageError when nothing was changed."""

    def listing(self) -> ChannelList:
        """Who is connected, who may write, who waits."""
        ...

    async def pair(self, code: str, *, may_approve: bool = False) -> PairedSender:
        """Let in who was told this code, and, if so, let it decide about calls; durable when it returns."""
        ...

    async def unpair(self, channel: str, sender: str) -> None:
        """Let a sender write no more; durable when it returns."""
        ...
