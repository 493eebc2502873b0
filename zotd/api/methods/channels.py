"""Commands about messaging channels."""

import logging

from zotd.api.channel_desk import ChannelDesk
from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import connection_of
from zotd.wire import api, channels
from zotd.wire.errors import Code, CommandError

log = logging.getLogger(__name__)


async def listing(call: Invocation, params: api.Nothing) -> channels.ChannelList:
    """List the channels and the senders that may write."""
    del params
    return _desk(call).listing()


async def pair(call: Invocation, params: channels.ChannelPair) -> channels.PairedSender:
    """Allow the sender that was given a pairing code to write."""
    paired = await _desk(call).pair(params.code, may_approve=params.may_approve)
    sender = connection_of(call).sender
    log.info("connection %s paired the sender %s of the channel %s", sender, paired.sender, paired.channel)
    return paired


async def unpair(call: Invocation, params: channels.ChannelUnpair) -> None:
    """Remove a sender's permission to write."""
    await _desk(call).unpair(params.channel, params.sender)
    sender = connection_of(call).sender
    log.info("connection %s unpaired the sender %s of the channel %s", sender, params.sender, params.channel)


def _desk(call: Invocation) -> ChannelDesk:
    desk = connection_of(call).context.channels
    if desk is None:
        raise CommandError(Code.UNSUPPORTED, "this daemon was started without channels")
    return desk
