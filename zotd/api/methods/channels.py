"""Commands about messaging channels."""

import logging

from zotd.api.channel_desk import ChannelDesk
from zotd.api.dispatch import Invocation
from zotd.wire import api, channels
from zotd.wire.errors import Code, CommandError

log = logging.getLogger(__name__)


async def listing(desk: ChannelDesk | None, call: Invocation, params: api.Nothing) -> channels.ChannelList:
    """List the channels and the senders that may write."""
    del call, params
    return _served(desk).listing()


async def pair(desk: ChannelDesk | None, call: Invocation, params: channels.ChannelPair) -> channels.PairedSender:
    """Allow the sender that was given a pairing code to write."""
    paired = await _served(desk).pair(params.code, may_approve=params.may_approve)
    sender = call.door.sender
    log.info("connection %s paired the sender %s of the channel %s", sender, paired.sender, paired.channel)
    return paired


async def unpair(desk: ChannelDesk | None, call: Invocation, params: channels.ChannelUnpair) -> None:
    """Remove a sender's permission to write."""
    await _served(desk).unpair(params.channel, params.sender)
    sender = call.door.sender
    log.info("connection %s unpaired the sender %s of the channel %s", sender, params.sender, params.channel)


def _served(desk: ChannelDesk | None) -> ChannelDesk:
    if desk is None:
        raise CommandError(Code.UNSUPPORTED, "this daemon was started without channels")
    return desk
